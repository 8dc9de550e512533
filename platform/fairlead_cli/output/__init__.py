"""Output of answers, changes and progress."""
