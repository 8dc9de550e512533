"""How many replicas a revision should have. Pure."""
