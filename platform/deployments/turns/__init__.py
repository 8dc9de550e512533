"""Turns to services: by the controller of Kubernetes clusters, many at once, and by sweeps, one after the other."""
