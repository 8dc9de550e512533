"""The pages of rollouts."""
