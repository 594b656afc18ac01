"""The signed-in pages: views read the request, make a call into queries or operations, render."""
