"""The files of the spool: what is written, put aside, found again, and stored together."""
