"""Worker end of the channel: a thread receives messages and passes them to the waiting callers.

The process ends when the server's end is closed, whatever the model is doing.
"""

import itertools
import os
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from serving_runtime.backends.python.wire.channel import Channel, ChannelClosedError
from serving_runtime.common.request import Tensor

WINDOW = 16
"""Flow control: maximum responses of one request in flight to a slow client."""


Take: TypeAlias = Callable[[tuple[dict[str, Any], list[Tensor]]], None]
"""Takes a response of the server, in the receiving thread; must not block."""


class Answering:
    """One unfinished request from the server.

    Attributes:
        cancelled: its client has gone.
    """

    def __init__(self) -> None:
        self.cancelled = False
        self._room = threading.Semaphore(WINDOW)

    def wait_for_room(self) -> None:
        """Return once another response may be sent; at once where it is cancelled."""
        if not self.cancelled:
            self._room.acquire()

    def taken(self) -> None:
        self._room.release()

    def cancel(self) -> None:
        self.cancelled = True
        self._room.release()


class Connection:
    """The messages between the model's code and the server.

    Attributes:
        work: messages for the main thread.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.work: queue.SimpleQueue[tuple[dict[str, Any], list[Tensor]]] = queue.SimpleQueue()
        self._open: dict[int, Answering] = {}
        self._numbers = itertools.count()
        self._calls: dict[int, Take] = {}

    def start(self) -> None:
        threading.Thread(target=self._receive, name="receive", daemon=True).start()

    def send(self, message: dict[str, Any], tensors: Sequence[Tensor] = ()) -> None:
        try:
            self._channel.send(message, tensors)
        except ChannelClosedError:
            os._exit(0)

    def answering(self, number: int) -> Answering:
        """Return the state of a request, by its number from the server."""
        return self._open[number]

    def answered(self, number: int) -> None:
        self._open.pop(number, None)

    def call(self, message: dict[str, Any], tensors: Sequence[Tensor], take: Take) -> None:
        """Send the server a request; `take` is called with each response, the last one with `final`."""
        number = next(self._numbers)
        self._calls[number] = take
        self.send({**message, "call": number}, tensors)

    def _receive(self) -> None:
        try:
            while True:
                self._take(*self._channel.receive())
        except ChannelClosedError:
            os._exit(0)

    def _take(self, message: dict[str, Any], tensors: list[Tensor]) -> None:
        match message["do"]:
            case "cancel":
                if state := self._open.get(message["number"]):
                    state.cancel()
            case "taken":
                if state := self._open.get(message["number"]):
                    state.taken()
            case "answer":
                take = self._calls[message["call"]]
                if message["final"]:
                    del self._calls[message["call"]]
                take((message, tensors))
            case "execute":
                for request in message["requests"]:  # now: a request may be cancelled while others run
                    self._open[request["number"]] = Answering()
                self.work.put((message, tensors))
            case _:
                self.work.put((message, tensors))


_current: list[Connection] = []


def connect(channel: Channel) -> Connection:
    """Make this process's one connection."""
    connection = Connection(channel)
    _current.append(connection)
    return connection


def current() -> Connection:
    """Return this process's connection."""
    return _current[0]
