"""`fairlead clusters join`: what a further cluster needs, and its registration."""
