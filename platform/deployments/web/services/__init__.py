"""Pages of services."""
