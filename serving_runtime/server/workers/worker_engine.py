"""Worker engine: broadcasts repository commands to the models of all workers, and sums their statistics."""

from collections.abc import Mapping
from typing import Any

from serving_runtime import proto
from serving_runtime.engine.catalog.load_override import FILE_PREFIX
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.engine.serving.statistics import summed
from serving_runtime.protocol.grpc.services import repository
from serving_runtime.protocol.settings import LOG, TRACE
from serving_runtime.server.workers.worker_ipc import Do, Member

LOAD, UNLOAD, STATISTICS = "load", "unload", "statistics"
IN_ORDER = frozenset({LOAD, UNLOAD, LOG, TRACE})

_Load = proto.message("inference.RepositoryModelLoadRequest")
_Unload = proto.message("inference.RepositoryModelUnloadRequest")
_StatisticsRequest = proto.message("inference.ModelStatisticsRequest")
_Statistics = proto.message("inference.ModelStatisticsResponse")


class OneOfSeveral(Engine):
    """An engine beside others; `member` is set before its first call."""

    member: Member

    @property
    def does(self) -> Mapping[str, Do]:
        """Return the commands that this worker executes for all."""
        return {LOAD: self._load_here, UNLOAD: self._unload_here, STATISTICS: self._statistics_here}

    async def all_do(self, what: str, payload: bytes) -> bytes:
        """Have all workers execute a command (see Member)."""
        return await self.member.all_do(what, payload)

    async def load(self, name: str, config: str | None = None, files: Mapping[str, bytes] | None = None) -> None:
        request = _Load(model_name=name)
        if config is not None:
            request.parameters["config"].string_param = config
        for path, content in (files or {}).items():
            request.parameters[f"{FILE_PREFIX}{path}"].bytes_param = content
        await self.all_do(LOAD, request.SerializeToString())

    async def unload(self, name: str, *, dependents: bool = False) -> None:
        request = _Unload(model_name=name)
        request.parameters["unload_dependents"].bool_param = dependents
        await self.all_do(UNLOAD, request.SerializeToString())

    async def statistics(self, name: str = "", version: str = "") -> Any:
        asked = _StatisticsRequest(name=name, version=version)
        found = await self.all_do(STATISTICS, asked.SerializeToString())
        return summed(_Statistics.FromString(found))  # concatenated messages are one with the entries of all

    async def _load_here(self, payload: bytes) -> bytes:
        request = _Load.FromString(payload)
        await super().load(request.model_name, *repository.load_parameters(request))
        return b""

    async def _unload_here(self, payload: bytes) -> bytes:
        request = _Unload.FromString(payload)
        await super().unload(request.model_name, dependents=repository.unload_dependents(request))
        return b""

    async def _statistics_here(self, payload: bytes) -> bytes:
        request = _StatisticsRequest.FromString(payload)
        content: bytes = (await super().statistics(request.name, request.version)).SerializeToString()
        return content
