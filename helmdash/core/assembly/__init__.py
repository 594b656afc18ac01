"""Assembly: a prompt put together from chunks within a budget, with its manifest."""
