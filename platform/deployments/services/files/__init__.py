"""Service files: applied, checked before, with the files that they import."""
