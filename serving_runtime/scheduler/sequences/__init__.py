"""Sequence batching: related requests run in order, one at a time, with the model's state in between."""
