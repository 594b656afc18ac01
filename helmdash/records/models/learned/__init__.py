"""What is learned from calls: windows, suggestions and trials of budgets, and what-ifs."""
