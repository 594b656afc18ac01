"""What alert rules look at, and what pages show of them."""
