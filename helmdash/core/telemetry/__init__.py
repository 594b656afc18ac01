"""Calls of models in what programs export by OpenTelemetry: spans and log records, any dialect."""
