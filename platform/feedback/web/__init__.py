"""Pages of feedback."""
