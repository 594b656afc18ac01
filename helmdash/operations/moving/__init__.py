"""Moving from SQLite to PostgreSQL: every row, in steps that can be taken up again (ADR 30).

`source` is what is read out of the file, `target` the database that is filled and the mark in it
of how far that went, `moving` tells the story. The secret key and the spool stay where they are, in
the data directory that both share.
"""

from __future__ import annotations

from helmdash.operations.moving.moving import Moved, MoveProblem, move

__all__ = ["MoveProblem", "Moved", "move"]
