"""Command line parser, its shell completion and its reference page."""
