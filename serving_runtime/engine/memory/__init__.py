"""Memory management: the models' budget, release of freed memory, regions shared with clients."""
