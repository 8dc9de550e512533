"""Queries of recordings and replays."""
