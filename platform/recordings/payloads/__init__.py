"""Recorded payloads: collected per turn from the taps of a service's replicas, stored in recordings, read by replays."""
