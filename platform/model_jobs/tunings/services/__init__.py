"""Changes of tunings, and their run by a worker."""
