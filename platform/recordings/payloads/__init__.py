"""Recorded payloads: collected each turn from the taps of a service's replicas, kept in recordings, read by replays."""
