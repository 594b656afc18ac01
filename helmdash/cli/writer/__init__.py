"""The host's writer process: `keeping` starts it, and it is `python -m helmdash.cli.writer FD`."""
