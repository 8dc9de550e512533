"""Which requests are recorded. Pure."""
