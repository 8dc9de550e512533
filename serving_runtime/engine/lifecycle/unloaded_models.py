"""What is remembered of unloaded models where there are too many to keep them: their memory and their files' marks."""

from collections import OrderedDict
from collections.abc import Mapping

from serving_runtime.engine.catalog.repository import Marks

MOST = 1 << 16


class UnloadedModels:
    """Bounded memory of models by name; lives on the event loop."""

    def __init__(self) -> None:
        self._measured: OrderedDict[str, dict[tuple[int, int], int]] = OrderedDict()
        self._marks: OrderedDict[str, Marks] = OrderedDict()

    def measured_bytes(self, name: str) -> Mapping[tuple[int, int], int]:
        """Return the memory that a model took when it was loaded last; empty for an unknown one."""
        return self._measured.get(name, {})

    def keep(self, name: str, measured: Mapping[tuple[int, int], int]) -> bool:
        """Remember a model that is unloaded; returns whether another one is forgotten for it."""
        self._measured[name] = dict(measured)
        self._measured.move_to_end(name)
        if len(self._measured) <= MOST:
            return False
        other, _ = self._measured.popitem(last=False)
        self._marks.pop(other, None)
        return True

    def changes(self, name: str, marks: Marks) -> bool:
        """Remember the files that a model is loaded from; returns whether they are others than before."""
        before = self._marks.get(name)
        self._marks[name] = marks
        return before is not None and before != marks
