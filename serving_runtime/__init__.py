"""The V2 serving runtime: a model repository behind HTTP and gRPC."""

__version__ = "0.1.0"
