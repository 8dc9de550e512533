"""Domain decisions about services and rollouts: no database, no clock, no network. Pure."""
