"""Following single requests: which are followed, when they began, waited, ran and ended, and where that is told."""
