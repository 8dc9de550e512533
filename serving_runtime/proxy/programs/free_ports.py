"""Free ports for programs, chosen before they start."""

import socket
from contextlib import ExitStack

from serving_runtime.proxy.programs.plan import HOST, Ports
from serving_runtime.proxy.programs.programs_file import NAMES


def free_ports() -> dict[str, Ports]:
    """Return ports of each program that no process listens on.

    All are bound at once, so they differ. They are free again for the programs, which bind them soon; meanwhile no
    connection takes one, because the kernel gives connections ports of the other parity while there are any.
    """
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(2 * len(NAMES))]
        for sock in sockets:
            sock.bind((HOST, 0))
        found = [int(sock.getsockname()[1]) for sock in sockets]
    return {name: Ports(*found[2 * number : 2 * number + 2]) for number, name in enumerate(NAMES)}
