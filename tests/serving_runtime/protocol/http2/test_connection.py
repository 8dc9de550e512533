"""One connection: answers, windows, the end of it. h2spec tries the rules one by one; these are what it cannot see."""

from hypothesis import given, settings
from hypothesis import strategies as st

from serving_runtime.protocol.http2 import frames
from serving_runtime.protocol.http2.frames import DATA, END_STREAM, ErrorCode
from tests.serving_runtime._support.http2_peer import HEADERS, TRAILERS, Echo, Host, Peer, Slow, headers


def content(peer: Peer, number: int) -> bytes:
    return b"".join(frame.payload for frame in peer.received() if frame.kind == DATA and frame.stream_id == number)


async def test_a_request_is_answered_in_one_write() -> None:
    peer = Peer()
    writes = []
    peer.connection.out.write = writes.append
    number = peer.ask(b"hello")
    peer.transport.written += b"".join(writes)
    assert [(frame.kind, frame.payload) for frame in peer.received() if frame.stream_id == number] == [
        (frames.HEADERS, HEADERS),
        (DATA, b"hello"),
        (frames.HEADERS, TRAILERS),
    ]
    assert len(writes) == 1


@given(
    st.lists(st.binary(max_size=60_000), min_size=1, max_size=6),
    st.integers(1, 70_000),
    st.lists(st.integers(1, 5000), min_size=1, max_size=20),
)
@settings(deadline=None, max_examples=60)
async def test_answers_arrive_whole_however_pieces_are_cut_and_windows_widened(
    requests: list[bytes], window: int, cuts: list[int]
) -> None:
    peer = Peer(settings={frames.INITIAL_WINDOW_SIZE: window})
    sent = b""
    for number, request in enumerate(requests):
        stream_id = 2 * number + 1
        sent += headers(stream_id)
        pieces = [request[at : at + 16_384] for at in range(0, len(request), 16_384)] or [b""]
        for place, piece in enumerate(pieces):
            sent += frames.frame(DATA, END_STREAM if place == len(pieces) - 1 else 0, stream_id, piece)
    at = 0
    for cut in cuts:
        peer.send(sent[at : at + cut])
        at += cut
    peer.send(sent[at:])
    found = dict.fromkeys(range(1, 2 * len(requests), 2), b"")
    ended: set[int] = set()
    while len(ended) < len(requests):
        received = peer.received()
        assert received, "the server waits though windows are open"
        for frame in received:
            if frame.kind == DATA:
                assert len(frame.payload) <= frames.SMALLEST_MAX_FRAME_BYTES
                found[frame.stream_id] += frame.payload
                size = len(frame.payload)
                if size:
                    peer.send(frames.window_update(0, size), frames.window_update(frame.stream_id, size))
            if frame.kind == frames.HEADERS and frame.flags & END_STREAM:
                ended.add(frame.stream_id)
    assert list(found.values()) == requests
    assert not peer.connection.streams
    assert peer.connection.out.unsent_bytes == 0


async def test_no_more_is_sent_than_windows_allow() -> None:
    peer = Peer(settings={frames.INITIAL_WINDOW_SIZE: 10})
    number = peer.ask(bytes(30))
    assert len(content(peer, number)) == 10
    peer.send(frames.window_update(number, 5))
    assert len(content(peer, number)) == 5
    peer.send(frames.settings({frames.INITIAL_WINDOW_SIZE: 0}))
    peer.send(frames.window_update(number, 8))
    assert content(peer, number) == b"", "the window was taken back below what was sent"
    peer.send(frames.window_update(number, 100))
    assert len(content(peer, number)) == 15


async def test_streams_take_turns() -> None:
    peer = Peer(Host(Slow), {frames.INITIAL_WINDOW_SIZE: 1 << 20})
    numbers = [peer.ask() for _ in range(3)]
    peer.transport.full = True
    peer.connection.pause_writing()
    for stream in peer.host.streams:
        stream.answer(HEADERS, bytes(40_000), TRAILERS)
    peer.transport.empty()
    order = [frame.stream_id for frame in peer.received() if frame.kind == DATA]
    assert order[:3] == numbers


async def test_nothing_is_sent_on_a_stream_that_the_client_has_reset() -> None:
    peer = Peer(Host(Slow))
    number = peer.ask(b"x")
    (stream,) = peer.host.streams
    peer.send(frames.rst_stream(number, ErrorCode.CANCEL))
    assert stream.gone
    stream.answer(HEADERS, b"late", TRAILERS)
    assert [frame for frame in peer.received() if frame.stream_id == number] == []


async def test_an_answer_before_the_end_of_its_request_tells_the_client_to_stop() -> None:
    peer = Peer(Host(Slow))
    number = peer.begin()
    peer.host.streams[0].answer(HEADERS, b"enough", TRAILERS)
    last = peer.received()[-1]
    assert (last.kind, last.payload) == (frames.RST_STREAM, bytes(4))
    peer.send(frames.frame(DATA, 0, number, b"under way"), frames.frame(DATA, END_STREAM, number, b"too"))
    assert peer.received() == []
    assert not peer.transport.closed


async def test_a_lost_connection_tells_all_its_streams() -> None:
    peer = Peer(Host(Slow))
    for _ in range(3):
        peer.ask()
    peer.connection.connection_lost(None)
    assert [stream.gone for stream in peer.host.streams] == [True] * 3
    assert peer.host.connection is None


async def test_draining_answers_what_the_client_asked_before_it_knew() -> None:
    peer = Peer(Host(Slow))
    first = peer.ask()
    peer.connection.drain()
    goaway, ping = peer.received()
    assert goaway.payload[:4] == frames.LAST_STREAM_ID.to_bytes(4, "big")
    second = peer.ask()  # on its way when the farewell was
    peer.send(frames.frame(frames.PING, frames.ACK, 0, ping.payload))
    (last,) = peer.received()
    assert last.payload[:4] == second.to_bytes(4, "big")
    late = peer.ask()
    (refusal,) = peer.received()
    assert (refusal.stream_id, refusal.payload) == (late, ErrorCode.REFUSED_STREAM.to_bytes(4, "big"))
    for stream in peer.host.streams:
        assert not peer.transport.closed
        stream.answer(HEADERS, b"done", TRAILERS)
    assert peer.transport.closed
    assert [frame.stream_id for frame in peer.received() if frame.kind == DATA] == [first, second]


async def test_a_connection_without_streams_closes_as_soon_as_the_client_has_heard() -> None:
    peer = Peer()
    peer.connection.drain()
    peer.send(frames.frame(frames.PING, frames.ACK, 0, peer.received()[-1].payload))
    assert peer.transport.closed


async def test_more_streams_than_are_allowed_are_refused_and_may_be_tried_again() -> None:
    peer = Peer(Host(Slow, max_streams=2))
    for _ in range(3):
        peer.ask()
    (refusal,) = [frame for frame in peer.received() if frame.kind == frames.RST_STREAM]
    assert refusal.payload == ErrorCode.REFUSED_STREAM.to_bytes(4, "big")
    peer.host.streams[0].answer(HEADERS, b"", TRAILERS)
    peer.ask()
    assert len(peer.host.streams) == 3


class Granting(Echo):
    """Asks for the window that its request needs, which its first bytes say."""

    __slots__ = ()

    def on_content(self, content: bytes) -> None:
        if not self.content:
            self.connection.inbound.ask(self, int.from_bytes(content[:4], "big"))
        self.content += content

    def on_end(self) -> None:
        """Stay under way."""


async def test_large_requests_wait_for_one_another() -> None:
    most = 128 * 1024 * 1024
    peer = Peer(Host(Granting))
    for size in (most // 2, most // 2, most // 2, 10):
        peer.send(frames.frame(DATA, 0, peer.begin(), size.to_bytes(4, "big")))
    granted = [frame.stream_id for frame in peer.received() if frame.kind == frames.WINDOW_UPDATE]
    assert granted == [1, 3], "who came first is served first"
    peer.send(frames.rst_stream(1, ErrorCode.CANCEL))
    assert [frame.stream_id for frame in peer.received()] == [5]
    peer.host.streams[1].answer(HEADERS, b"", TRAILERS)
    assert [frame.stream_id for frame in peer.received() if frame.kind == frames.WINDOW_UPDATE] == [7]


async def test_a_request_above_all_limits_of_memory_is_let_in_alone() -> None:
    peer = Peer(Host(Granting))
    for size in (1 << 30, 10):
        peer.send(frames.frame(DATA, 0, peer.begin(), size.to_bytes(4, "big")))
    assert [frame.stream_id for frame in peer.received()] == [1]


@given(st.binary(max_size=400))
@settings(deadline=None)
async def test_any_bytes_behind_the_preface_do_no_harm(sent: bytes) -> None:
    peer = Peer(Host(Slow))
    peer.send(sent)
    peer.connection.connection_lost(None)
    assert not peer.connection.streams


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10), st.sampled_from([0, 1, 4, 5, 8, 0x20, 0x2D]), st.integers(0, 9), st.binary(max_size=40)
        ),
        max_size=40,
    )
)
@settings(deadline=None, max_examples=200)
async def test_any_frames_end_in_answers_or_a_farewell(sent: list[tuple[int, int, int, bytes]]) -> None:
    peer = Peer()
    for kind, flags, number, payload in sent:
        peer.send(frames.frame(kind, flags, number, payload))
    for frame in peer.received():
        assert frame.kind in range(10)
    peer.connection.connection_lost(None)
    assert not peer.connection.streams
    assert peer.connection.out.unsent_bytes == 0


async def test_headers_confirm_once_that_the_client_gives_the_table_less_room() -> None:
    peer = Peer(settings={frames.HEADER_TABLE_SIZE: 0})
    blocks = []
    for settings_ in ({}, {frames.HEADER_TABLE_SIZE: 8192}, {frames.HEADER_TABLE_SIZE: 0}):
        peer.send(frames.settings(settings_))
        peer.ask()
        blocks += [frame.payload for frame in peer.received() if frame.kind == frames.HEADERS]
    assert blocks == [b"\x20" + HEADERS, TRAILERS, HEADERS, TRAILERS, HEADERS, TRAILERS]


async def test_headers_of_a_stream_confirm_the_table_too() -> None:
    peer = Peer(Host(Slow))
    number = peer.ask()
    peer.send(frames.settings({frames.HEADER_TABLE_SIZE: 100}))
    peer.received()
    (stream,) = peer.host.streams
    stream.send_headers(HEADERS)
    stream.finish(TRAILERS)
    answers = [frame.payload for frame in peer.received() if frame.stream_id == number]
    assert answers == [b"\x20" + HEADERS, TRAILERS]


async def test_a_table_that_shrinks_and_grows_in_one_frame_is_confirmed() -> None:
    peer = Peer()
    smaller, larger = (frames.settings({frames.HEADER_TABLE_SIZE: size})[frames.HEAD_BYTES :] for size in (0, 4096))
    peer.send(frames.frame(frames.SETTINGS, 0, 0, smaller + larger))
    peer.received()
    peer.ask()
    assert next(frame.payload for frame in peer.received() if frame.kind == frames.HEADERS) == b"\x20" + HEADERS


async def test_a_table_that_stays_or_grows_is_not_confirmed() -> None:
    peer = Peer(settings={frames.HEADER_TABLE_SIZE: 4096})
    peer.send(frames.settings({frames.HEADER_TABLE_SIZE: 65_536}))
    peer.received()
    peer.ask()
    assert next(frame.payload for frame in peer.received() if frame.kind == frames.HEADERS) == HEADERS
