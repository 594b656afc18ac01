"""Backup and restore: database, secret key and spool in one archive, taken while the server serves.

`archive` is the file, `sqlite` and `postgres` what is read out of and put into a database, `spool`
the calls that wait beside it; `making` and `restoring` tell the two stories (ADR 22).
"""

from __future__ import annotations

from helmdash.operations.backup.archive import ArchiveProblem, Manifest
from helmdash.operations.backup.making import make_backup
from helmdash.operations.backup.restoring import RestoreProblem, restore

__all__ = ["ArchiveProblem", "Manifest", "RestoreProblem", "make_backup", "restore"]
