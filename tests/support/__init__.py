"""What the suite stands on: a PostgreSQL, a browser, a model and a running HelmDash."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
