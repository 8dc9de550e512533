"""The web UI: its views, what they show as values, forms and drawings, and the streams that keep pages up to date."""
