"""Shared memory extension over gRPC (Triton: shared memory extension)."""

from typing import Any

from serving_runtime import proto
from serving_runtime.common.errors import Unsupported
from serving_runtime.engine.memory.shared_memory import SharedMemory
from serving_runtime.protocol.grpc.methods import DirectMethod, Method, StreamMethod


class MemoryService:
    """Answers the methods of regions; they raise ServingError."""

    name = "inference.GRPCInferenceService"

    def __init__(self, memory: SharedMemory) -> None:
        self._memory = memory
        self.direct: dict[str, DirectMethod] = {}
        self.streams: dict[str, StreamMethod] = {}
        self.methods: dict[str, Method] = {
            "SystemSharedMemoryStatus": self.status,
            "SystemSharedMemoryRegister": self.register,
            "SystemSharedMemoryUnregister": self.unregister,
            "CudaSharedMemoryStatus": self.cuda_status,
            "CudaSharedMemoryRegister": self.no_cuda,
            "CudaSharedMemoryUnregister": self.cuda_unregister,
        }

    def drain(self) -> None:
        """Do nothing: this service has no streams."""

    async def status(self, request: Any) -> Any:
        response = proto.message("inference.SystemSharedMemoryStatusResponse")()
        for region in self._memory.status(request.name):
            found = response.regions[region.name]
            found.name, found.key, found.offset, found.byte_size = region
        return response

    async def register(self, request: Any) -> Any:
        self._memory.register(request.name, request.key, request.offset, request.byte_size)
        return proto.message("inference.SystemSharedMemoryRegisterResponse")()

    async def unregister(self, request: Any) -> Any:
        self._memory.unregister(request.name)
        return proto.message("inference.SystemSharedMemoryUnregisterResponse")()

    async def cuda_status(self, request: Any) -> Any:
        """Return no regions, for clients that list all of them before they begin."""
        if request.name:
            return await self.no_cuda(request)
        return proto.message("inference.CudaSharedMemoryStatusResponse")()

    async def cuda_unregister(self, request: Any) -> Any:
        """Do nothing: CUDA regions are not supported."""
        if request.name:
            return await self.no_cuda(request)
        return proto.message("inference.CudaSharedMemoryUnregisterResponse")()

    async def no_cuda(self, _request: Any) -> Any:
        raise Unsupported("CUDA shared memory is not supported: models run on the CPU; use system shared memory")
