"""Slices of a cluster: free, offered and required. Pure."""
