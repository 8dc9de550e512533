"""Pages of clusters."""
