"""Model repositories: locations, models and versions."""
