"""Circles of imports, by Tarjan's algorithm (R. Tarjan, Depth-first search and linear graph algorithms, 1972)."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet


def circles(graph: Mapping[str, AbstractSet[str]]) -> Iterator[list[str]]:
    """Yield the nodes of each circle, sorted; of circles that share a node all nodes together."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []
    for start in graph:
        if start in index:
            continue
        work = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        path.append(start)
        while work:
            node, targets = work[-1]
            after = next(targets, None)
            if after is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    place = path.index(node)
                    found.append(sorted(path[place:]))
                    del path[place:]
            elif after not in index:
                index[after] = low[after] = len(index)
                path.append(after)
                work.append((after, iter(sorted(graph[after]))))
            elif after in path:
                low[node] = min(low[node], index[after])
    yield from (each for each in found if len(each) > 1)
