"""Models: found, completed, loaded, checked against requests, counted."""
