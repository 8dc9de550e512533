"""What is checked of a request before it waits for its model, and what it may ask of its answer."""
