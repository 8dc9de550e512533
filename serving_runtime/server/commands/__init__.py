"""The commands of `fairlead-serve`, one module each."""
