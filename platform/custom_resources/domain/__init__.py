"""Pure parts of custom resources."""
