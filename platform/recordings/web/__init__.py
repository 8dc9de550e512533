"""Pages of recordings and replays."""
