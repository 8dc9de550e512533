"""Pure rules of an upgrade."""
