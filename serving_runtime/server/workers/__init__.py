"""Several worker processes that are one server."""
