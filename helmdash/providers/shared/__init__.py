"""What several vendors' formats have in common: framing of bytes, members of JSON, ids, images."""
