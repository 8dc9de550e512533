"""`DJANGO_SETTINGS_MODULE=fairlead.settings`, as of release 0.1.0."""

from control_plane.settings import *  # noqa: F403
