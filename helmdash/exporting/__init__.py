"""Recorded calls with HelmDash's judgement, to receivers of OTLP traces."""

from __future__ import annotations

from helmdash.exporting.running import start, stop

__all__ = ["start", "stop"]
