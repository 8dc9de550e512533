"""Scheduling of decoupled models: any number of responses per request."""
