"""`python -m bench [NAME ...]`: run the benchmarks (all, or those named) and print one table."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from importlib import import_module
from importlib.util import find_spec

from bench.table import print_table

# In this order: the quick ones first.
NAMES = (
    "fitting",
    "whatif",
    "cuts",
    "evidence",
    "ranking",
    "recording",
    "reports",
    "exports",
    "gateway",
    "care",
    "pages",
)


def main() -> int:
    """0 when every goal is met, 1 when one is not."""
    # Asked to end, end as on Ctrl-C: with what was started stopped and removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--data", metavar="DIR", help="for ranking: the data and its evaluator")
    parser.add_argument("--seconds", help="for fuzz: how long (600)")
    parser.add_argument("--mib", help="for transcripts: the size of the home (1024)")
    given = parser.parse_args()
    if given.seconds:
        os.environ["FUZZ_SECONDS"] = given.seconds
    if given.mib:
        os.environ["TRANSCRIPTS_MIB"] = given.mib
    if given.data:
        os.environ["RANKBENCH_DATA"] = given.data
    names = given.names or NAMES
    unknown = [name for name in names if find_spec(f"bench.{name}") is None]
    if unknown:
        parser.error(f"no benchmark called {', '.join(unknown)}; there are {', '.join(NAMES)}")
    found = []
    for name in names:
        print(f"Measuring {name} ...", file=sys.stderr, flush=True)
        found += import_module(f"bench.{name}").rows()
    print_table(found)
    return 1 if any(row.ok is False for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
