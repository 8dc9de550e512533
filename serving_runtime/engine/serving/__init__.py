"""The engine that protocols call: admission of requests, their checks, observers and statistics."""
