"""Calls as they are judged before they are stored: histories, canonical JSON, masking."""
