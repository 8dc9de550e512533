"""Message channel between agent and holder: JSON and open files, over a pair of Unix sockets (SOCK_SEQPACKET).

A message arrives whole or not at all, so that one of a killed agent does not damage the next. Its JSON is in a memory
file, the first of the descriptors, as the kernel bounds the length of messages but not of files.
"""

import array
import json
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

FIRST_DESCRIPTOR = 3
"""A started program inherits descriptors under this number and the following ones."""
_MOST_DESCRIPTORS = 32
_INT = array.array("i")


def pair() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a new channel."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(
    channel: socket.socket, message: Mapping[str, Any], descriptors: Sequence[int] = (), *, flags: int = 0
) -> None:
    """Send a message with copies of `descriptors`; raises OSError where the other end is gone."""
    text = os.memfd_create("message")
    try:
        with os.fdopen(os.dup(text), "wb") as file:
            file.write(json.dumps(message).encode())
        socket.send_fds(channel, [b"m"], [text, *descriptors], flags)
    finally:
        os.close(text)


def receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Return the next message with its descriptors, which are the caller's to close; None for the end of the channel.

    Raises:
        ValueError: it is no message; none of its descriptors is left open.
    """
    # socket.recv_fds ignores its flags, and a program would inherit descriptors meant for others.
    content, ancillary, _, _ = channel.recvmsg(
        16, socket.CMSG_SPACE(_MOST_DESCRIPTORS * _INT.itemsize), socket.MSG_CMSG_CLOEXEC
    )
    descriptors = [
        each
        for _, _, found in ancillary
        for each in array.array("i", found[: len(found) // _INT.itemsize * _INT.itemsize])
    ]
    if not content and not descriptors:
        return None
    try:
        if not descriptors:
            raise ValueError("a message without its file")
        message = json.loads(os.pread(descriptors[0], os.fstat(descriptors[0]).st_size, 0))
        if not isinstance(message, dict):
            raise ValueError(f"a message that is a {type(message).__name__}")
    except (OSError, ValueError, RecursionError) as error:
        close(descriptors)
        raise ValueError(str(error)) from error
    close(descriptors[:1])
    return message, descriptors[1:]


def close(descriptors: Sequence[int]) -> None:
    for each in descriptors:
        os.close(each)
