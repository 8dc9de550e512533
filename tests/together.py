"""Which files of tests one process runs, one after the other: those that would wait for each other anyway.

A process that waits for what another one holds runs nothing meanwhile: on a machine of two cores, half of it.
"""

from typing import Any

from xdist.scheduler import LoadFileScheduling

# They hold port 8080 for minutes: port_8080.py says why.
_AT_PORT_8080 = {
    f"tests/cluster/{name}.py"
    for name in ("test_chart", "test_envoy_gateway", "test_kustomize_installed", "test_routes", "test_transformer")
}


class Together(LoadFileScheduling):  # type: ignore[misc]
    """A file's tests stay together (`--dist loadfile`), and so do those of the files above."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "port 8080" if file in _AT_PORT_8080 else file


def scheduler(config: Any, log: Any) -> Together | None:
    """Return what gives tests out; None for the way that was asked for."""
    return Together(config, log) if config.getoption("dist") == "loadfile" else None
