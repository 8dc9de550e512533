"""Changes of recordings and replays."""
