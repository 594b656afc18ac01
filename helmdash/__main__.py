"""`python -m helmdash`: the command `helmdash`, where its folder is not on the PATH."""

from __future__ import annotations

import sys

from helmdash.cli.running import run

if __name__ == "__main__":
    # Usage lines have it, and Django would take the path of this file for its own.
    sys.exit(run(["helmdash", *sys.argv[1:]]))
