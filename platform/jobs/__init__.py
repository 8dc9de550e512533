"""Leased background jobs: claimed, renewed, ended."""
