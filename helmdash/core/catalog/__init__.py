"""The catalog: its entries, taken apart and compacted, and the receipt of what was cut."""
