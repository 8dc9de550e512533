"""A client of an ASGI application."""

import asyncio
import json

from common.http.asgi import Message, StreamingASGIHandler


class Client:
    """Sends one request piece by piece, as far as it is asked for the pieces."""

    def __init__(self, *pieces: bytes, leaves: bool = False) -> None:
        self.pieces = list(pieces)
        self.taken = 0
        self.leaves = leaves
        self.sent: list[Message] = []
        self.answered = asyncio.Event()

    async def receive(self) -> Message:
        if self.taken < len(self.pieces):
            self.taken += 1
            more = self.leaves or self.taken < len(self.pieces)
            return {"type": "http.request", "body": self.pieces[self.taken - 1], "more_body": more}
        if not self.leaves:
            await self.answered.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self.answered.set()

    async def ask(self, method: str, path: str, headers: dict[str, str], query: str = "") -> tuple[int, dict]:
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
            "server": ("testserver", 80),
            "client": ("127.0.0.1", 1),
        }
        await asyncio.wait_for(StreamingASGIHandler()(scope, self.receive, self.send), timeout=20)
        if not self.sent:
            return 0, {}
        body = b"".join(message.get("body", b"") for message in self.sent[1:])
        return self.sent[0]["status"], json.loads(body) if body else {}
