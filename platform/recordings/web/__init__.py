"""The pages of recordings and replays."""
