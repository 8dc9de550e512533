"""How often a job is tried, and when again. Pure."""
