"""Bodies: what programs send and get, whatever door they come by."""
