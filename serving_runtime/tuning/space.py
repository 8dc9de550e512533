"""Search space: settings of a model's configuration, and concurrency levels. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

DELAYS_US = (0, 100, 200, 500, 1000, 2000, 5000, 10_000)
_DIMENSIONS = ("instances", "batch_size", "queue_delay_us", "intra_op_threads")


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """One configuration of a model.

    Attributes:
        instances: concurrent runs on each device.
        batch_size: maximum rows of a batch; 1 joins no requests.
        queue_delay_us: how long a request waits for others.
        intra_op_threads: of each run.
    """

    instances: int = 1
    batch_size: int = 1
    queue_delay_us: int = 0
    intra_op_threads: int = 1

    @property
    def cost(self) -> tuple[int, int, int]:
        """Return the setting's resource use, to prefer the smaller of two that are as fast."""
        return self.instances * self.intra_op_threads, self.batch_size, self.queue_delay_us

    def __str__(self) -> str:
        joined = "no batching" if self.batch_size == 1 else f"batch {self.batch_size}, delay {self.queue_delay_us} us"
        return f"{_counted(self.instances, 'instance')}, {joined}, {_counted(self.intra_op_threads, 'thread')}"


@dataclass(frozen=True, slots=True)
class Space:
    """The levels of each dimension, ascending; `baseline` is the current configuration, and one of the settings.

    Attributes:
        concurrencies: requests in flight in a measurement.
        cores: limit of instances times threads, with more than one thread.
    """

    baseline: Setting
    instances: tuple[int, ...]
    batch_sizes: tuple[int, ...]
    queue_delays_us: tuple[int, ...]
    intra_op_threads: tuple[int, ...]
    concurrencies: tuple[int, ...]
    cores: int

    def allows(self, setting: Setting) -> bool:
        """Return whether a setting is valid: a delay needs batches, and threads need cores."""
        if setting == self.baseline:
            return True
        fits = setting.intra_op_threads == 1 or setting.instances * setting.intra_op_threads <= self.cores
        return fits and (setting.batch_size > 1 or setting.queue_delay_us == 0)

    def settings(self) -> Iterator[Setting]:
        """Return all settings."""
        return filter(self.allows, (Setting(*levels) for levels in product(*self._levels)))

    def coarse(self) -> list[Setting]:
        """Return the baseline, then settings spread over the space: first, middle and last of each dimension."""
        found = filter(self.allows, (Setting(*levels) for levels in product(*map(_spread, self._levels))))
        return list(dict.fromkeys([self.baseline, *sorted(found, key=lambda setting: setting.queue_delay_us)]))

    def neighbours(self, setting: Setting) -> list[Setting]:
        """Return the settings one level away in one dimension, or in two of which one goes up and one down."""
        steps = [self._step(setting, at, by) for at in range(len(_DIMENSIONS)) for by in (1, -1)]
        near = [step for step in steps if step is not None]
        trades = [
            both
            for up, down in product(range(len(_DIMENSIONS)), repeat=2)
            if up != down and (more := self._step(setting, up, 1)) and (both := self._step(more, down, -1))
        ]
        return list(dict.fromkeys(each for each in (*near, *trades) if self.allows(each) and each != setting))

    @property
    def _levels(self) -> tuple[tuple[int, ...], ...]:
        return self.instances, self.batch_sizes, self.queue_delays_us, self.intra_op_threads

    def _step(self, setting: Setting, at: int, by: int) -> Setting | None:
        """Return the setting one level up or down in a dimension; one without batches has no delay."""
        levels, name = self._levels[at], _DIMENSIONS[at]
        index = levels.index(getattr(setting, name)) + by
        if not 0 <= index < len(levels):
            return None
        stepped = replace(setting, **{name: levels[index]})
        return replace(stepped, queue_delay_us=0) if stepped.batch_size == 1 and name == "batch_size" else stepped


def doubling(least: int, most: int, *others: int) -> tuple[int, ...]:
    """Return `least`, twice that and so on up to `most`, and the others, ascending."""
    found = set(others)
    while least <= most:
        found.add(least)
        least *= 2
    return tuple(sorted(found))


def rungs(most: int) -> tuple[int, ...]:
    """Return 1, 2, 3, 4, 6, 8, 12 ... up to `most`: two to each doubling."""
    return tuple(sorted({*doubling(1, most), *doubling(3, most)}))


def _spread(levels: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted({levels[0], levels[len(levels) // 2], levels[-1]}))


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
