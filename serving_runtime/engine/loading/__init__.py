"""Model loading: from a model's folder to a model in memory."""
