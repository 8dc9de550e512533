"""Counting: plain integers while requests run, text and messages when somebody asks."""
