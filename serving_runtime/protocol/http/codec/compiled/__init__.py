"""Numbers out of JSON by code that is compiled while the server runs, where numba is installed."""
