"""A model's configuration: read from config.pbtxt, refused where unsupported, kept as small frozen values."""
