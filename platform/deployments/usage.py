"""Tells the registry where a model version is live, so that it is not deleted under a service's feet."""


def register() -> None:
    """Make the provider known to the registry; called once, when the apps are ready."""
