"""What feedback does in each turn of the reconciler."""
