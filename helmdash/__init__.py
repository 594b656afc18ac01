"""HelmDash: the context-health control plane for fleets of LLM agents."""

from __future__ import annotations

__version__ = "0.1.0"
