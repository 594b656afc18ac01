"""Demo data, and generated calls to measure with."""
