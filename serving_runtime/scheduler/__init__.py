"""Schedulers: batching, rate limiting, sequences, ensembles. Know arrays and times, no models and no protocols."""
