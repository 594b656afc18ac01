"""The rules of HelmDash as plain values and functions: no clock, no I/O, no framework."""
