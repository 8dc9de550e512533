"""Multi-process server: several worker processes as one server."""
