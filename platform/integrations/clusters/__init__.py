"""Clusters where models run. `drivers.driver_for` is the only entry for the reconciler and for tasks."""
