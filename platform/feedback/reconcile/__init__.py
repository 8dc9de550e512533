"""What turns of the reconciler do for feedback."""
