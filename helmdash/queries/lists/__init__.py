"""What all lists share: pages, orders, how far they look, filters and words."""
