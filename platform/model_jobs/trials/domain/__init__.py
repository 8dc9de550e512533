"""Orders and results of trials. Pure."""
