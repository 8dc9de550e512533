"""Jobs of a cluster. Pure."""
