"""Orders and results of builds. Pure."""
