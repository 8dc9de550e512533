"""Labels that the gateway of this machine took: read from the files of the agent, and stored.

Storing is idempotent, so a file is deleted after its labels are stored; where the process ends in between it is read
again. Labels of services that are gone are dropped.
"""

import logging
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from common.errors import FairleadError
from common.labels import MOST_LABELS, labels_of
from feedback.services.labels import labels_take
from integrations.clusters.local.feedback_spool import Batch, batches, waiting_files

logger = logging.getLogger(__name__)

_MOST_FILES = 500
"""Of one reading, so that it ends well before the next."""


def spool_read(*, folder: Path) -> int:
    """Store the labels in the oldest files of the folder; returns how many were in them."""
    found = 0
    for path in islice(waiting_files(folder), _MOST_FILES):
        for batch in batches(path):
            found += len(batch.labels)
            _store(batch)
        path.unlink(missing_ok=True)
    return found


def _store(batch: Batch) -> None:
    at = datetime.fromtimestamp(batch.at, UTC)
    namespace, _, name = batch.service.partition("/")
    actor = f"key {batch.by}" if batch.by else "gateway"
    try:
        labels = labels_of(batch.labels, now=at, most=MOST_LABELS)
        labels_take(namespace=namespace, name=name, labels=labels, actor=actor, now=at)
    except FairleadError as error:
        logger.warning("%d labels that the gateway took are dropped: %s", len(batch.labels), error)
