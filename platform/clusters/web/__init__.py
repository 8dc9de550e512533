"""The pages of clusters."""
