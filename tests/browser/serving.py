"""The control plane under uvicorn in a thread of the test's process, on the test's database; it can be cut off."""

import asyncio
import contextlib
import socket
import threading
import time

import uvicorn

DEADLINE_S = 60.0


class _Prompt(uvicorn.Server):
    """Ends as soon as it can: uvicorn looks ten times a second and sleeps between, which is long for every test."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ended = asyncio.Event()

    def end(self) -> None:
        """Begin to end; called in the server's own loop."""
        self.should_exit = True
        self._ended.set()

    async def main_loop(self) -> None:
        tick = 0
        while not await self.on_tick(tick):
            tick += 1
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), 0.1)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let what is under way end, its connections are cut already; cancel what does not."""
        for each in [*self.servers, *(sockets or [])]:
            each.close()
        if tasks := list(self.server_state.tasks):
            _, left = await asyncio.wait(tasks, timeout=self.config.timeout_graceful_shutdown)
            for task in left:
                task.cancel()
        for server in self.servers:
            await server.wait_closed()


class Running:
    """A server at one address, whether it runs or not.

    Attributes:
        address: where it is from the first start on.
    """

    def __init__(self) -> None:
        self.address = ""
        self._port = 0
        self._server: _Prompt | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Serve, at the same port as before."""
        from control_plane.asgi import application  # noqa: PLC0415 - needs Django's settings

        config = uvicorn.Config(application, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
        server = _Prompt(config)
        listener = socket.create_server(("127.0.0.1", self._port))
        self._port = listener.getsockname()[1]
        self.address = f"http://127.0.0.1:{self._port}"

        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            await server.serve([listener])

        self._thread = threading.Thread(target=lambda: asyncio.run(serve()), name="server")
        self._server = server
        self._thread.start()
        deadline = time.monotonic() + DEADLINE_S
        while not server.started:
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.01)

    def cut(self) -> None:
        """Break every connection without a word; the server goes on."""
        server, loop = self._server, self._loop
        assert server is not None
        assert loop is not None

        def abort() -> None:
            for connection in list(server.server_state.connections):
                connection.transport.abort()  # type: ignore[union-attr]

        loop.call_soon_threadsafe(abort)

    def stop(self) -> None:
        """End the server; nothing answers at its address until it is started again."""
        server, thread, loop = self._server, self._thread, self._loop
        if server is None or thread is None or loop is None:
            return
        self.cut()  # an open stream would be waited for
        loop.call_soon_threadsafe(server.end)
        thread.join(DEADLINE_S)
        assert not thread.is_alive(), "the server did not end"
        self._server = self._thread = None
