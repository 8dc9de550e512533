"""Model lifecycle: loading, reloading and unloading models while requests are answered."""
