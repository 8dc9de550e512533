"""REST API client of the command line: one method per verb, errors as the sentence of the API.

A request beyond a rate limit is sent again when its `Retry-After` is over, after a minute of such waits at most. The
control plane refuses it before it does anything, so that is safe for every method; behind a proxy's 429 only for those
that HTTP calls idempotent.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import sleep
from typing import Any, BinaryIO, NoReturn, Self
from urllib.parse import quote, urlsplit

import httpx

from fairlead_cli.config import Access
from fairlead_cli.errors import (
    ApiError,
    BrokenOff,
    CliError,
    NotFound,
    Refusal,
    Unreachable,
)
from fairlead_cli.files.upload_sources import Source
from fairlead_cli.output import render
from fairlead_cli.output.waiting import poll_until

Json = dict[str, Any]

_TIMEOUT = httpx.Timeout(30.0, connect=5.0)
# The server answers an upload only after it has stored and hashed all of it.
_UPLOAD_TIMEOUT = httpx.Timeout(600.0, connect=5.0)
_UPLOAD_TRIES = 5
_CHUNK_BYTES = 256 * 1024
_AWAY_S = 60.0
_BETWEEN_LOOKS_S = 1.0
# Statuses of a proxy before the control plane, and 500 of its server, which cuts requests when it has to end.
_GONE_STATUSES = {500, 502, 503, 504}
_NO_ANSWER_OF_OURS = "unknown"
_THROTTLED = "throttled"
_IDEMPOTENT = {"GET", "PUT", "DELETE"}
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


@dataclass
class _Patience:
    """How long one request may still wait, in seconds, while a rate limit refuses it."""

    left_s: int = 60


def path(*parts: object) -> str:
    """Return an API path of untrusted parts, each escaped: `path("models", name)`.

    A slash is rejected even when escaped, and dots alone would mean another path: no name has these.
    """
    for part in map(str, parts):
        if part in ("", ".", "..") or "/" in part:
            raise CliError(f"{part!r} can be no name; expected letters, digits and hyphens")
    return "/".join(quote(str(part), safe="") for part in parts)


class Client:
    """A connection to one control plane; use as a context manager."""

    def __init__(self, access: Access) -> None:
        headers = {"Accept": "application/json"}
        if access.token:
            headers["Authorization"] = f"Bearer {access.token}"
        # A proxy of the environment is for other machines, not for this one.
        proxied = urlsplit(access.url).hostname not in _LOOPBACK
        self._http = httpx.Client(
            base_url=f"{access.url}/api/v1/", headers=headers, timeout=_TIMEOUT, trust_env=proxied
        )
        self._access = access
        self._has_said_that_it_waits = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def get(self, path: str) -> Json:
        """Return the object at `path`."""
        return self._json(self._send("GET", path))

    def all(self, path: str, limit: int | None = None, filters: Mapping[str, str] | None = None) -> list[Json]:
        """Return the list at `path`, page after page, at most `limit` entries that fit the filters."""
        found: list[Json] = []
        query: Mapping[str, str] | None = {**(filters or {}), **({"limit": str(limit)} if limit else {})} or None
        while query is not None or not found:
            page = self._json(self._send("GET", path, params=query))
            found += page["results"]
            if not page["next"] or (limit and len(found) >= limit):
                break
            # Only its query counts: behind a proxy the server may not know its own address.
            query = dict(httpx.URL(page["next"]).params)
        return found[:limit]

    def put(self, path: str, document: Json) -> Json:
        """Make or change the object at `path`."""
        return self._json(self._send("PUT", path, json=document))

    def post(self, path: str, document: Json | None = None) -> Json:
        """Post `document` to `path`."""
        return self._json(self._send("POST", path, json=document or {}))

    def post_content(self, path: str, content: bytes, media_type: str) -> Json:
        """Post bytes of another type than JSON, which the server may take long to check and to store."""
        headers = {"Content-Type": media_type}
        return self._json(self._send("POST", path, content=content, headers=headers, timeout=_UPLOAD_TIMEOUT))

    def patch(self, path: str, document: Json) -> Json:
        """Change what `document` names of the object at `path`."""
        return self._json(self._send("PATCH", path, json=document))

    def delete(self, path: str) -> None:
        """Delete the object at `path`."""
        self._send("DELETE", path)

    def upload(
        self, path: str, source: Source, sha256: str, sent: Callable[[int], None], query: Sequence[tuple[str, str]] = ()
    ) -> Json:
        """Stream `source` to `path`; `sent` receives the bytes of each piece that has gone out.

        Where the server goes away in the middle (it is upgraded, say), all is sent again once one answers, and `sent`
        receives minus the bytes sent so far. The same bytes are the same version: never two.
        """
        patience = _Patience()
        for left in reversed(range(_UPLOAD_TRIES)):
            gone = 0

            def pieces() -> Iterator[bytes]:
                nonlocal gone
                for piece in source.pieces():
                    yield piece
                    sent(len(piece))
                    gone += len(piece)

            try:
                return self._upload(path, pieces(), source, sha256, query)
            except (BrokenOff, ApiError) as error:
                if left and self._waited_for_turn(error, "POST", patience):
                    sent(-gone)
                    continue
                if not left or not _has_gone_away(error):
                    raise
            sent(-gone)
            poll_until(
                self._is_there,
                bool,
                timeout_s=_AWAY_S,
                every_s=_BETWEEN_LOOKS_S,
                what=f"an answer of {self._access.url}",
            )
        raise AssertionError("the last try returns or raises")

    def _upload(
        self, path: str, pieces: Iterator[bytes], source: Source, sha256: str, query: Sequence[tuple[str, str]]
    ) -> Json:
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Length": str(source.size_bytes),
            "X-Content-SHA256": sha256,
        }
        params = [("filename", source.filename), *query]
        return self._json(
            self._send_once("POST", path, params=params, content=pieces, headers=headers, timeout=_UPLOAD_TIMEOUT)
        )

    def _is_there(self) -> bool:
        try:
            self.get("whoami")
        except ApiError as error:
            return not _has_gone_away(error)
        return True

    def download(self, path: str, target: BinaryIO, came: Callable[[int, int | None], None]) -> str:
        """Write the bytes at `path` to `target` and return the file's name as the server names it.

        `came` receives the bytes of each piece and the size of all.
        """
        patience = _Patience()
        while True:
            try:
                return self._download(path, target, came)
            except ApiError as error:
                if not self._waited_for_turn(error, "GET", patience):
                    raise

    def _download(self, path: str, target: BinaryIO, came: Callable[[int, int | None], None]) -> str:
        headers = {"Accept": "application/octet-stream"}
        try:
            with self._http.stream("GET", path, headers=headers) as answer:
                if not answer.is_success:
                    answer.read()
                    self._raise(answer)
                size = int(answer.headers["Content-Length"]) if "Content-Length" in answer.headers else None
                for piece in answer.iter_bytes(_CHUNK_BYTES):
                    target.write(piece)
                    came(len(piece), size)
                disposition: str = answer.headers.get("Content-Disposition", "")
                return disposition.partition('filename="')[2].rstrip('"')
        except httpx.TransportError as error:
            raise Unreachable(f"{self._access.url} broke off while it sent {path}: {error}") from error

    def _send(self, method: str, path: str, **request: Any) -> httpx.Response:
        patience = _Patience()
        while True:
            try:
                return self._send_once(method, path, **request)
            except ApiError as error:
                if not self._waited_for_turn(error, method, patience):
                    raise

    def _waited_for_turn(self, error: CliError, method: str, patience: _Patience) -> bool:
        """Wait as long as a refusal for a rate limit says; False where the request is not to be sent again."""
        if not isinstance(error, ApiError) or error.refusal.status != httpx.codes.TOO_MANY_REQUESTS:
            return False
        refusal = error.refusal
        is_safe = refusal.code == _THROTTLED or (refusal.code == _NO_ANSWER_OF_OURS and method in _IDEMPOTENT)
        if not is_safe or not 0 < refusal.retry_after_s <= patience.left_s:
            return False
        patience.left_s -= refusal.retry_after_s
        if not self._has_said_that_it_waits:
            self._has_said_that_it_waits = True
            sentence = f"waiting until requests are allowed again, now {refusal.retry_after_s} s: {refusal.message}"
            print(render.clean(sentence), file=sys.stderr, flush=True)
        sleep(refusal.retry_after_s)
        return True

    def _send_once(self, method: str, path: str, **request: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, path, **request)
        except httpx.TimeoutException as error:
            raise Unreachable(f"{self._access.url} did not answer in time ({method} {path})") from error
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError) as error:
            raise BrokenOff(f"{self._access.url} went away in the middle of {method} {path}: {error}") from error
        except httpx.TransportError as error:
            raise Unreachable(
                f"no answer from {self._access.url} ({error}); is it running (`fairlead up`) and is FAIRLEAD_URL right?"
            ) from error
        if not answer.is_success:
            self._raise(answer)
        return answer

    def _raise(self, answer: httpx.Response) -> NoReturn:
        after = answer.headers.get("Retry-After", "")
        refusal = replace(self._refusal(answer), retry_after_s=int(after) if after.isascii() and after.isdigit() else 0)
        raise NotFound(refusal) if refusal.status == httpx.codes.NOT_FOUND else ApiError(refusal)

    def _json(self, answer: httpx.Response) -> Json:
        try:
            document = answer.json()
        except ValueError as error:
            raise CliError(
                f"{answer.request.url} answered something that is not JSON; is {self._access.url} Fairlead?"
            ) from error
        if not isinstance(document, dict):
            raise CliError(f"{answer.request.url} answered JSON that is no object; is {self._access.url} Fairlead?")
        return document

    def _refusal(self, answer: httpx.Response) -> Refusal:
        try:
            error = answer.json()["error"]
            said = Refusal(
                answer.status_code,
                error["code"],
                error["message"],
                error.get("field"),
                error.get("request_id") or "",
                tuple(map(str, error.get("details", ()))),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            url = answer.request.url
            return Refusal(
                answer.status_code, _NO_ANSWER_OF_OURS, f"{url} answered {answer.status_code} {answer.reason_phrase}"
            )
        if said.status == httpx.codes.UNAUTHORIZED and not self._access.token:
            hint = (
                f"no token for {self._access.url}; set FAIRLEAD_TOKEN, run `fairlead login`, "
                "or call this in the folder of `fairlead up`"
            )
            return Refusal(said.status, said.code, hint)
        return said


def _has_gone_away(error: CliError) -> bool:
    """Return whether the control plane went away, or a proxy before it says so; other answers are its own."""
    if isinstance(error, ApiError):
        return error.refusal.code == _NO_ANSWER_OF_OURS and error.refusal.status in _GONE_STATUSES
    return isinstance(error, Unreachable)
