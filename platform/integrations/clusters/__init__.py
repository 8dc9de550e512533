"""Where models run. `drivers.driver_for` is the only way in for the reconciler and for tasks."""
