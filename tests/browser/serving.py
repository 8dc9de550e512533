"""The control plane under uvicorn in a thread of the test's process, on the test's database; it can be cut off."""

import asyncio
import socket
import threading
import time

import uvicorn

DEADLINE_S = 60.0


class Running:
    """A server at one address, whether it runs or not.

    Attributes:
        address: where it is from the first start on.
    """

    def __init__(self) -> None:
        self.address = ""
        self._port = 0
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Serve, at the same port as before."""
        from fairlead.asgi import application  # noqa: PLC0415 - needs Django's settings

        config = uvicorn.Config(application, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
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
        server, thread = self._server, self._thread
        if server is None or thread is None:
            return
        self.cut()  # an open stream would be waited for
        server.should_exit = True
        thread.join(DEADLINE_S)
        assert not thread.is_alive(), "the server did not end"
        self._server = self._thread = None
