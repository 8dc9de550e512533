"""Pages of rollout policies."""
