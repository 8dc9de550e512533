"""HTTP source of one model file. Every redirect is checked against the allowed prefixes before it is followed.

Proxies and certificate authorities are those of the environment (`HTTPS_PROXY`, `SSL_CERT_FILE`).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from common.errors import FairleadError, InvalidInput, NotFound, Unavailable
from common.uris import WEB, Address, check_allowed, parse
from integrations.sources.content import Content, SourceFile

MAX_REDIRECTS = 5
_TIMEOUT = httpx.Timeout(60.0, connect=10.0)
_HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "Fairlead-Import/1"}
_WORTH_A_RETRY = {408, 425, 429}


def files_at(address: Address, allowed: Sequence[Address]) -> list[SourceFile]:
    """Return the one file at the address; its size is known when it is open. Raises InvalidInput for a folder."""
    if address.is_folder:
        raise InvalidInput(f"{address.shown} ends in a slash, but http has no folders; give an archive of the folder")
    return [SourceFile("", None, lambda: _opened(address, allowed))]


@contextmanager
def _opened(address: Address, allowed: Sequence[Address]) -> Iterator[Content]:
    with httpx.Client(timeout=_TIMEOUT, follow_redirects=False, headers=_HEADERS) as client:
        for _ in range(MAX_REDIRECTS + 1):
            with _answer(client, address) as answer:
                if answer.next_request is None:
                    yield _content(answer, address)
                    return
                address = _redirected(address, str(answer.next_request.url), allowed)
    raise InvalidInput(f"{address.shown} redirects more than {MAX_REDIRECTS} times")


@contextmanager
def _answer(client: httpx.Client, address: Address) -> Iterator[httpx.Response]:
    request = client.build_request("GET", address.url)
    try:
        answer = client.send(request, stream=True)
    except httpx.RemoteProtocolError as error:
        raise InvalidInput(f"{address.shown} answered what is not HTTP as it should be: {error}") from error
    except httpx.HTTPError as error:
        raise _broken(address, error) from error
    try:
        yield answer
    finally:
        answer.close()


def _redirected(address: Address, target: str, allowed: Sequence[Address]) -> Address:
    try:
        found = parse(target)
        check_allowed(found, allowed)
        if found.scheme not in WEB:
            raise InvalidInput(f"{found.shown} is not on the web")
    except FairleadError as error:
        raise InvalidInput(f"{address.shown} redirects elsewhere: {error.message}") from error
    return found


def _content(answer: httpx.Response, address: Address) -> Content:
    status = answer.status_code
    if status in (404, 410):
        raise NotFound(f"there is nothing at {address.shown}: it answered {status}")
    if status in _WORTH_A_RETRY or status >= 500:
        raise Unavailable(f"{address.shown} answered {status} {answer.reason_phrase}")
    if status != 200:
        raise InvalidInput(
            f"{address.shown} answered {status} {answer.reason_phrase}; expected the file with status 200"
        )
    encoding = answer.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise InvalidInput(f"{address.shown} sends the file with Content-Encoding {encoding[:40]!r}, unasked")
    length = answer.headers.get("Content-Length", "")
    return _Body(answer.iter_raw(), address, int(length) if length.isdecimal() else None)


@dataclass
class _Body:
    pieces: Iterator[bytes]
    address: Address
    size_bytes: int | None

    def read(self, _size: int = -1, /) -> bytes:
        try:
            return next(self.pieces, b"")
        except httpx.HTTPError as error:
            raise _broken(self.address, error) from error


def _broken(address: Address, error: httpx.HTTPError) -> Unavailable:
    if isinstance(error, httpx.TimeoutException):
        return Unavailable(f"{address.shown} sent nothing for too long ({type(error).__name__})")
    return Unavailable(f"{address.shown} cannot be read: {error or type(error).__name__}")
