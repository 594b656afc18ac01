"""What is learned of models, and the edits that it suggests."""
