"""Changes of builds, and their run by a worker."""
