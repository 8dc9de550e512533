"""Dynamic batching and queue policies: dynamic_batching of config.pbtxt as frozen values."""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from serving_runtime.common.errors import ModelError

MAX_PRIORITY_LEVELS = 1000


class TimeoutAction(enum.Enum):
    """Action on a request whose queue timeout has passed."""

    REJECT = "REJECT"
    DELAY = "DELAY"


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """Limits of one priority level's queue; 0 means no limit.

    Attributes:
        allow_timeout_override: whether a request's own `timeout` may shorten the default.
    """

    timeout_action: TimeoutAction = TimeoutAction.REJECT
    default_timeout_us: int = 0
    allow_timeout_override: bool = False
    max_queue_size: int = 0

    def timeout_us(self, requested_us: int) -> int:
        """Return the queue timeout of a request that sets `requested_us` (0: none); 0 is no timeout."""
        if not (self.allow_timeout_override and requested_us):
            return self.default_timeout_us
        return min(requested_us, self.default_timeout_us) if self.default_timeout_us else requested_us


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """Dynamic batching policy.

    Attributes:
        priority_levels: 0 for one queue; else levels 1 (served first) to this.
        queues: the queue policy per level, for level 0 without levels.
        preserve_ordering: responses leave in the order of their requests.
    """

    max_batch_size: int
    preferred_batch_sizes: frozenset[int]
    max_queue_delay_us: int
    priority_levels: int
    default_priority_level: int
    queues: Mapping[int, QueuePolicy]
    preserve_ordering: bool = False

    @property
    def may_expire(self) -> bool:
        """Return whether requests may time out."""
        return any(queue.default_timeout_us or queue.allow_timeout_override for queue in self.queues.values())


def batch_policy(config: Any) -> BatchPolicy | None:
    """Return the dynamic batching of a ModelConfig message, None when each request runs alone; raises ModelError."""
    if not config.HasField("dynamic_batching"):
        return None
    batching, limit = config.dynamic_batching, config.max_batch_size
    where = f"model '{config.name}': dynamic_batching"
    if limit == 0:
        raise ModelError(f"{where} needs max_batch_size > 0")
    check_preferred(batching.preferred_batch_size, limit, where)
    levels, default = batching.priority_levels, batching.default_priority_level
    if levels and not 1 <= default <= levels:
        raise ModelError(f"{where}: default_priority_level must be in [1, {levels}], found {default}")
    if levels > MAX_PRIORITY_LEVELS:
        raise ModelError(f"{where}: priority_levels must be at most {MAX_PRIORITY_LEVELS}, found {levels}")
    strays = [level for level in batching.priority_queue_policy if not 1 <= level <= levels]
    if strays:
        raise ModelError(f"{where}: priority_queue_policy names level {strays[0]}, but priority_levels is {levels}")
    common = _queue_policy(batching.default_queue_policy)
    queues = dict.fromkeys(range(1, levels + 1) if levels else (0,), common)
    for level in batching.priority_queue_policy:
        queues[level] = _queue_policy(batching.priority_queue_policy[level])
    if batching.preserve_ordering:
        _check_can_be_ordered(levels, queues.values(), where)
    return BatchPolicy(
        max_batch_size=limit,
        preferred_batch_sizes=frozenset(batching.preferred_batch_size),
        max_queue_delay_us=batching.max_queue_delay_microseconds,
        priority_levels=levels,
        default_priority_level=default if levels else 0,
        queues=queues,
        preserve_ordering=batching.preserve_ordering,
    )


def check_preferred(sizes: Iterable[int], limit: int, where: str) -> None:
    """Raise ModelError unless every preferred batch size is positive and at most `limit`."""
    if any(not 1 <= size <= limit for size in sizes):
        raise ModelError(f"{where}: preferred_batch_size must be in [1, {limit}], found {list(sizes)}")


def _check_can_be_ordered(levels: int, policies: Iterable[QueuePolicy], where: str) -> None:
    """Raise ModelError where priorities or delayed requests reorder, against preserved ordering."""
    if levels > 1:
        raise ModelError(f"{where}: preserve_ordering allows one priority level, found priority_levels {levels}")
    if any(policy.timeout_action is TimeoutAction.DELAY and policy.default_timeout_us for policy in policies):
        raise ModelError(f"{where}: preserve_ordering does not go with a queue policy whose timeout_action is DELAY")


def _queue_policy(message: Any) -> QueuePolicy:
    return QueuePolicy(
        timeout_action=TimeoutAction.DELAY if message.timeout_action else TimeoutAction.REJECT,
        default_timeout_us=message.default_timeout_microseconds,
        allow_timeout_override=message.allow_timeout_override,
        max_queue_size=message.max_queue_size,
    )
