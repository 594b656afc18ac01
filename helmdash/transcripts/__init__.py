"""Calls out of what agents wrote on their user's own machine: their transcripts.

Runs in two places: as a zipapp on the machine of somebody who has nothing but Python 3.9, and as
`manage.py import_sessions` on the server's own machine. So it needs the standard library alone and
the syntax of Python 3.9 (tests/transcripts/test_alone.py), and knows nothing of the rest of
HelmDash: what it gives are reports as `POST /api/v1/calls/batch` takes them.

It reads only, follows no symbolic link, and lets texts out only where it is told to.
"""

from __future__ import annotations
