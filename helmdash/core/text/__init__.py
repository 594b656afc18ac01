"""Text: sizes, words, sentences, JSON in prose, hashes of messages, masking."""
