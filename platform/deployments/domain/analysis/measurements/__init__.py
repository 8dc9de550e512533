"""What each criterion of a gate says of the canary. Pure."""
