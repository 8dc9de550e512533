"""First values of features, from which their bins are fixed: clients' values, so encrypted while they wait."""

import json
import logging
import zlib
from collections.abc import Mapping
from typing import Any

from common.encryption import seal_bytes, unseal_bytes
from common.errors import Unavailable
from feedback.models import DriftBlock

logger = logging.getLogger(__name__)

PURPOSE = "first values of drift"
Values = dict[str, list[Any]]


def first_values(block: DriftBlock) -> Values:
    """Return the values by feature; none where they were encrypted under a key that is gone."""
    if not block.first:
        return {}
    try:
        found: Values = json.loads(zlib.decompress(unseal_bytes(bytes(block.first), purpose=PURPOSE)))
    except Unavailable as error:
        logger.warning("%s: the first values of features are gathered again: %s", block, error)
        return {}
    return found


def keep_first(block: DriftBlock, values: Mapping[str, list[Any]]) -> None:
    """Put the values into the block, which is not saved yet."""
    block.first = seal_bytes(zlib.compress(json.dumps(values).encode()), purpose=PURPOSE) if values else b""
