"""Participants of a reconcile tick beside the rollout: evidence, replicas, gates, traffic."""
