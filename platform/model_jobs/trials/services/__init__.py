"""Changes of trials, and their run by a worker."""
