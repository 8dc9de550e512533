"""Request validation before a request waits for its model, and options of its response."""
