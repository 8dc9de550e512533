"""HTTP body codecs: JSON and binary tensor data."""
