"""Changes of feedback."""
