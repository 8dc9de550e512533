"""Turns to custom resources, where their watches run."""
