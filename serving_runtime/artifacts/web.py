"""HTTP source of a file: the control plane, with the pod's token, or the address that a model was imported from."""

import json
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from serving_runtime.artifacts.remotes import InterruptedTransferError, Opened
from serving_runtime.artifacts.unpack import is_known
from serving_runtime.common.errors import ModelError

_TIMEOUT = httpx.Timeout(60.0, connect=10.0)
_MAX_REDIRECTS = 5
_MAX_ERROR_BYTES = 4096
# 401: a cluster may check a token before it knows the pod that owns it.
_WORTH_A_RETRY = {401, 408, 425, 429}
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")
_BEHIND = re.compile(r"bytes \*/(\d+)")
_FILENAME = re.compile(r'filename="([^"]+)"')


@dataclass(frozen=True, slots=True)
class WebFile:
    """A file at an address.

    Attributes:
        token_file: holds the bearer token, read for each request since it is replaced before it expires; with one, no
            redirect is followed.
        authority: certificate authority of the address; None for those of the environment.
    """

    url: str
    token_file: Path | None = None
    authority: Path | None = None
    path: str = ""

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @contextmanager
    def open(self, first: int) -> Iterator[Opened]:
        """Open it at a byte offset."""
        verify = True if self.authority is None else ssl.create_default_context(cafile=str(self.authority))
        follow = self.token_file is None
        try:
            with (
                httpx.Client(
                    timeout=_TIMEOUT, verify=verify, follow_redirects=follow, max_redirects=_MAX_REDIRECTS
                ) as client,
                client.stream("GET", self.url, headers=self.headers(first)) as answer,
            ):
                yield self._opened(answer, first)
        except httpx.TooManyRedirects as error:
            raise ModelError(f"{self} redirects more than {_MAX_REDIRECTS} times") from error
        except httpx.HTTPError as error:
            raise InterruptedTransferError(f"{self} cannot be read: {error or type(error).__name__}") from error

    def headers(self, first: int = 0) -> dict[str, str]:
        """Return the headers of a range request from a byte offset."""
        headers = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "fairlead-serve"}
        if first:
            headers["Range"] = f"bytes={first}-"
        if self.token_file is not None:
            headers["Authorization"] = f"Bearer {self.token_file.read_text(encoding='ascii').strip()}"
        return headers

    def _opened(self, answer: httpx.Response, first: int) -> Opened:
        status, span = answer.status_code, answer.headers.get("Content-Range", "")
        name = urlsplit(self.url).path.rpartition("/")[2]
        if not is_known(name) and (named := _FILENAME.search(answer.headers.get("Content-Disposition", ""))):
            name = named[1]
        if status == 200:
            length = answer.headers.get("Content-Length", "")
            return Opened(0, int(length) if length.isdecimal() else None, name, answer.iter_raw())
        if status == 206 and (found := _RANGE.fullmatch(span)) and int(found[1]) == first:
            return Opened(first, int(found[2]), name, answer.iter_raw())
        if status == 416 and (found := _BEHIND.fullmatch(span)):
            return Opened(first, int(found[1]), name, iter(()))
        raise refusal_of(self, answer)


def refusal_of(there: WebFile, answer: httpx.Response) -> ModelError | InterruptedTransferError:
    """Return the error of an unsuccessful response: temporary or permanent."""
    sentence = f"{there} answered {answer.status_code} {answer.reason_phrase}{_said(answer)}"
    if answer.status_code in _WORTH_A_RETRY or answer.status_code >= 500:
        wait = answer.headers.get("Retry-After", "")
        return InterruptedTransferError(sentence, after_s=float(wait) if wait.isdecimal() else 0.0)
    return ModelError(sentence)


def _said(answer: httpx.Response) -> str:
    """Return the control plane's error message, after a colon; empty for another server's."""
    content = b""
    for piece in answer.iter_raw():
        content += piece
        if len(content) > _MAX_ERROR_BYTES:
            return ""
    try:
        return f": {json.loads(content)['error']['message']}"
    except (ValueError, KeyError, TypeError):
        return ""
