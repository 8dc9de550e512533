"""Model configuration: parsed from config.pbtxt, refused where unsupported, kept as small frozen values."""
