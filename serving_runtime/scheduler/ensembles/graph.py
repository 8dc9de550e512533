"""Dependency graph of an ensemble's steps: which a request needs, and which can run now. Pure."""

from collections.abc import Container, Iterable, Sequence

from serving_runtime.config.ensembles import Ensemble

_KEPT = 64


class Graph:
    """The steps of an ensemble by number, in the order of `Ensemble.steps`."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.steps = ensemble.steps
        self._maker = {tensor: number for number, step in enumerate(self.steps) for tensor in step.outputs.values()}
        self._needed: dict[frozenset[str], tuple[int, ...]] = {}

    def needed(self, outputs: Iterable[str]) -> tuple[int, ...]:
        """Return the steps that the outputs depend on, ascending."""
        wanted = frozenset(outputs)
        known = self._needed.get(wanted)
        if known is None:
            known = self._walk(wanted)
            if len(self._needed) < _KEPT:
                self._needed[wanted] = known
        return known

    def _walk(self, wanted: Iterable[str]) -> tuple[int, ...]:
        found: set[int] = set()
        open_tensors = list(wanted)
        while open_tensors:
            number = self._maker.get(open_tensors.pop())  # None: an input of the ensemble
            if number is not None and number not in found:
                found.add(number)
                open_tensors += self.steps[number].inputs.values()
        return tuple(sorted(found))

    def ready(self, waiting: Sequence[int], tensors: Container[str]) -> list[int]:
        """Return the waiting steps whose inputs are all among the tensors."""
        return [number for number in waiting if all(name in tensors for name in self.steps[number].inputs.values())]
