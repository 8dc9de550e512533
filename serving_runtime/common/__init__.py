"""Shared types of the runtime: requests, datatypes, errors, the side thread."""
