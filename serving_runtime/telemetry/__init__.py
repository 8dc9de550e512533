"""Telemetry: plain integers while requests run; text and messages are made per scrape or query."""
