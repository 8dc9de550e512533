"""REST API client of the command line: one method per verb, errors as the sentence of the API."""

from collections.abc import Callable, Iterator, Mapping, Sequence
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
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


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
            self._send("POST", path, params=params, content=pieces, headers=headers, timeout=_UPLOAD_TIMEOUT)
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
        refusal = self._refusal(answer)
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
