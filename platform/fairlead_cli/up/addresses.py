"""Addresses on the command line: parsing HOST:PORT and origins, and checks that ports are free."""

import errno
import socket
from contextlib import closing, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from fairlead_cli.errors import CliError
from fairlead_cli.up import processes


@dataclass(frozen=True, slots=True)
class Address:
    """Listening address of one server."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Return whether only programs on this machine reach it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def url(self) -> str:
        """Return the address as a URL that a browser on this machine can open."""
        return self.url_of("http")

    def url_of(self, scheme: str) -> str:
        """Return the URL that `url` is, with another scheme."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - compared, not bound
        return f"{scheme}://{Address(host, self.port)}"


def parse(text: str) -> Address:
    """Return HOST:PORT as an address; ValueError with a sentence otherwise."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is no address; expected HOST:PORT such as 127.0.0.1:8080")
    return Address(host, int(port))


def parse_origin(text: str) -> str:
    """Return http(s)://HOST[:PORT] as browsers write it; ValueError with a sentence otherwise."""
    parts = urlsplit(text)
    try:
        is_origin = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_origin = False
    if not is_origin or parts.username or parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError(f"{text!r} is no public address; expected https://HOST or https://HOST:PORT, without a path")
    return f"{parts.scheme}://{parts.netloc.lower()}"


def require_free(address: Address, option: str) -> None:
    """Raise one sentence if nothing can listen on `address`; `option` is the flag that changes it."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address.host, address.port))
            # Two sockets may bind with SO_REUSEADDR as long as none listens; only listening shows it.
            probe.listen(1)
        except PermissionError as error:
            raise CliError(
                f"port {address.port} may only be used by root; choose one above 1023 with {option}"
            ) from error
        except OSError as error:
            raise CliError(_why_taken(address, option, error)) from error


def require_apart(address: Address, gateway: Address) -> None:
    """Raise one sentence if pages and models would listen on the same port."""
    everywhere = {"0.0.0.0", "::"}  # noqa: S104 - compared, not bound
    if address.port == gateway.port and (address.host == gateway.host or everywhere & {address.host, gateway.host}):
        raise CliError(
            f"--address {address} and --gateway-address {gateway} are the same port; give the gateway another one"
        )


def _why_taken(address: Address, option: str, error: OSError) -> str:
    if isinstance(error, socket.gaierror) or error.errno != errno.EADDRINUSE:
        return f"cannot listen on {address}: {error.strerror}; choose another address with {option}"
    owner = _listener(address.port)
    by = f"process {owner} ({processes.command_line(owner)})" if owner else "a process of another user"
    return f"port {address.port} on {address.host} is taken by {by}; end that or choose another address with {option}"


def _listener(port: int) -> int | None:
    """Return the process id that listens on `port`, if this user may see it."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{fields[9]}]")
    for seen in processes.everyone() if inodes else ():
        with suppress(OSError):
            for descriptor in Path(f"/proc/{seen.pid}/fd").iterdir():
                with suppress(OSError):
                    if str(descriptor.readlink()) in inodes:
                        return seen.pid
    return None
