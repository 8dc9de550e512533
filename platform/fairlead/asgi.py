"""`fairlead.asgi:application`, as of release 0.1.0."""

from control_plane.asgi import application

__all__ = ["application"]
