"""Web UI: its views, view values, forms and charts, and the streams that update pages."""
