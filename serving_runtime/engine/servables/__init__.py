"""Servables: model versions that answer requests, by kind of model."""
