"""Inference engine: model repositories, loading, request checks, serving, statistics."""
