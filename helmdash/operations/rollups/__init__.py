"""Rollups of calls (ADR 32): noted with the calls, folded in groups, rebuilt when asked for."""
