"""What a tick of the reconciler does besides moving the rollout: evidence, replicas, gates, traffic."""
