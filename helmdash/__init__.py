"""HelmDash: the context-health control plane for fleets of LLM agents."""

__version__ = "0.1.0"
