"""Work that a server does by itself: each job once, however many processes and hosts there are."""
