"""Which models are loaded, and how they come and go while requests are answered."""
