"""Database of the control plane: a new one, its preparation, SQLite's files."""
