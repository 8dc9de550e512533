"""The V2 protocol as a client."""
