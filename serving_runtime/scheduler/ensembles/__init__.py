"""Requests to several models in the place of one: a step runs as soon as its inputs are there."""
