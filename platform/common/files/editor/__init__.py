"""Editor of a file on a page: its text, and a form of its main fields."""
