"""Ranking: how alike entries and an intent are, by their words and by past plans."""
