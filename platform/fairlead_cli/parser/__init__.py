"""The command line itself, its completion and its reference."""
