"""Forms and pages that builds and tunings share."""
