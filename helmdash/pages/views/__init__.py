"""The views, one module for each subject."""
