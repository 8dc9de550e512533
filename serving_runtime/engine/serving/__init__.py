"""Engine that protocols call: admission of requests, checks, observers and statistics."""
