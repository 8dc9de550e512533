"""Disk-full errors of this control plane: of its home and of its database."""

import logging

from django.conf import settings

from common.disk_full import no_room
from common.errors import NoRoom

logger = logging.getLogger(__name__)


def full_disk(error: BaseException) -> NoRoom | None:
    """Return the error to respond with where a full disk caused an error, and log it; None for any other."""
    found = no_room(error, home=settings.HOME, database=str(settings.DATABASES["default"]["NAME"]))
    if found is not None:
        logger.error("%s (%s)", found.message, error)
    return found
