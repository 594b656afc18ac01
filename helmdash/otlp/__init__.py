"""The OTLP face: spans and log records of programs that export OpenTelemetry, taken as calls.

OTLP/HTTP 1.x: https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""
