"""HTTP/2 timeouts of clients: for the preface, for header blocks, for requests, and to read whole answers.

Checked once a second: a request that arrives at once pays nothing.
"""

from serving_runtime.protocol.http2.frames import ConnectionFailure, ErrorCode
from serving_runtime.protocol.http2.header_blocks import Opening
from serving_runtime.protocol.http2.stream import Stream
from serving_runtime.protocol.progress import Progress

_MOST_ENDED = 100
"""Streams that one check ends; the next one ends others."""


class Arrivals:
    """Input that one connection's client owes.

    Args:
        began_at: the connection, in the loop's seconds.
    """

    def __init__(self, began_at: float) -> None:
        self._greeting: Progress | None = Progress(began_at)
        self._block: tuple[int, Progress] | None = None
        self._incoming: dict[Stream, Progress] = {}
        self._outgoing: dict[Stream, Progress] = {}

    def look(self, now: float, opening: Opening, streams: list[Stream], *, greeted: bool) -> None:
        """End overdue streams; raises ConnectionFailure for an overdue connection."""
        self._look_at_greeting(now, greeted=greeted)
        self._look_at_block(now, opening)
        ended = 0
        incoming: dict[Stream, Progress] = {}
        outgoing: dict[Stream, Progress] = {}
        for stream in streams:
            if stream.awaits_content:
                received = stream.received_bytes
                progress = self._incoming.get(stream) or Progress(now, received)
                if stream.window_bytes <= 0:  # it may send nothing
                    progress = Progress(now, received)
                incoming[stream] = progress
                if progress.too_slow(now, received) and ended < _MOST_ENDED:
                    stream.on_overdue()
                    ended += 1
                    continue
            if stream.answer_waits:
                # it shrinks as it is read, and nothing is added
                progress = outgoing[stream] = self._outgoing.get(stream) or Progress(now, -stream.unsent_bytes)
                if progress.too_slow(now, -stream.unsent_bytes):
                    stream.reset(ErrorCode.CANCEL)
        self._incoming, self._outgoing = incoming, outgoing

    def _look_at_greeting(self, now: float, *, greeted: bool) -> None:
        if greeted:
            self._greeting = None
        elif self._greeting is not None and self._greeting.too_slow(now, 0):
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "the connection's preface did not arrive in time")

    def _look_at_block(self, now: float, opening: Opening) -> None:
        if opening.awaits is None:
            self._block = None
            return
        if self._block is None or self._block[0] != opening.awaits:
            self._block = opening.awaits, Progress(now)
        if self._block[1].too_slow(now, 0):
            raise ConnectionFailure(ErrorCode.ENHANCE_YOUR_CALM, "headers did not arrive in time")
