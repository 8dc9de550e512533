"""Model jobs, run where models run: builds, tunings and trials."""
