"""Work that a worker holds by a lease: claimed, renewed, ended."""
