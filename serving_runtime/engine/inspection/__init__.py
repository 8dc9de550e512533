"""Model inspection and profiling: the JSON of `inspect` and `profile`."""
