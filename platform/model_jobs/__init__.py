"""Jobs with a model where models run: builds, tunings and trials."""
