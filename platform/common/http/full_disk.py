"""What a full disk means to this control plane: of its home and of its database."""

import logging

from django.conf import settings

from common.disk_full import no_room
from common.errors import NoRoom

logger = logging.getLogger(__name__)


def full_disk(error: BaseException) -> NoRoom | None:
    """Return the refusal to answer with where an error comes from a full disk, and log it; None for any other."""
    found = no_room(error, home=settings.HOME, database=str(settings.DATABASES["default"]["NAME"]))
    if found is not None:
        logger.error("%s (%s)", found.message, error)
    return found
