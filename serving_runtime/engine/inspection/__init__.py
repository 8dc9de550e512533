"""The JSON of `inspect` and `profile`."""
