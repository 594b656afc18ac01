"""`python -m helmdash.cli.making_tables`: make the tables of DATABASE_URL, for a move.

A process of its own, since its database is not its parent's. It ends with that, however that ends:
when standard input closes. Else it would go on alone, and write what it notes at its end into
tables that another try has begun to fill.
"""

from __future__ import annotations

import os
import sys
import threading

from django.core.management import execute_from_command_line


def main() -> None:
    """Make them."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    execute_from_command_line(["django", "migrate", "--no-input", "--verbosity", "0"])


def _end_with_parent() -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
