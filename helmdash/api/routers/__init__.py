"""The routes, one module for each subject. A view reads the request, makes one call, renders."""
