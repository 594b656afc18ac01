"""What lists show: columns, rows, groups, and the files that they become."""
