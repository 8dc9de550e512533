"""Usage page."""
