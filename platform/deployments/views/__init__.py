"""What the API and the pages show, as values. Pure."""
