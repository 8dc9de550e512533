"""Allowlist checks of skops files, before and after loading."""
