"""How answers, changes and progress look."""
