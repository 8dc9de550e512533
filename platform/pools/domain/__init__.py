"""Figures of model pools. Pure."""
