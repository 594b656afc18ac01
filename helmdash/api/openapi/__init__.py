"""The OpenAPI document: its schemas, its examples, and the page made from it."""
