"""How Django writes times, by language (FORMAT_MODULE_PATH): its own for a language go before the
settings."""
