"""What a skops file may be made of, before and after it is loaded."""
