"""Traffic selectors."""
