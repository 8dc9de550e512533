"""`python -m serving_runtime.backends.python.worker FILE SOCKET OUTGOING INCOMING`: started by the server alone."""

import faulthandler
import socket
import sys
from pathlib import Path

from serving_runtime.backends.python.wire.channel import Channel
from serving_runtime.backends.python.worker.connection import connect
from serving_runtime.backends.python.worker.service import Service


def main() -> None:
    """Serve until the server sends the end, or has gone."""
    faulthandler.enable()  # on a crash in a library, its place goes to the server's log
    file, *numbers = sys.argv[1:]
    connection_fd, outgoing, incoming = map(int, numbers)
    serve(Path(file), Channel(socket.socket(fileno=connection_fd), (outgoing, incoming)))


def serve(file: Path, channel: Channel) -> None:
    """Run the model in a file until the server sends the end, or has gone."""
    connection = connect(channel)
    connection.start()
    Service(connection, file).run()


if __name__ == "__main__":
    main()
