"""What-ifs: asked for, run by a job, cancelled, and turned into edits of budgets."""
