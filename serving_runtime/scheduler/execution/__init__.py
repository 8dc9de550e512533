"""Batch execution: model instances, joined requests, and completion."""
