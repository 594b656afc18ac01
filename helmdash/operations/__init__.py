"""Writes, one package for each subject: keyword-only functions, one short transaction each.

No circles among them (import-linter): `database` below, then `recording`, then `recorder` and
`care`, then `retention` and `planning`; `demo`, `backup` and `jobs` on top.
"""
