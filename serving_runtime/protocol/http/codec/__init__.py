"""Bodies of HTTP requests and responses: JSON and binary tensor data."""
