"""Gateway API routes of a service. Pure."""
