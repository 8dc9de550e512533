"""Model repositories: where they are, which models and versions they hold."""
