"""The pages of rollout policies."""
