"""Scheduling of decoupled models: any number of responses to a request."""
