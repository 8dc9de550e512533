"""What a service should be, from its file, its rollout and what its cluster runs. Pure."""
