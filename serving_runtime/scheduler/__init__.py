"""When a request runs, where, and with whom. Knows arrays and times, no models and no protocols."""
