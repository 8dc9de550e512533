"""Requests that belong together: in order, one at a time, with the state that the model left for the next."""
