#!/usr/bin/env python
"""Run a HelmDash command: `manage.py help` lists them."""

from __future__ import annotations

import sys

from helmdash.cli.running import run

if __name__ == "__main__":
    sys.exit(run(sys.argv))
