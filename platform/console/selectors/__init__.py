"""What the home page shows of all rooms."""
