"""People and programs at the web's Service, each request over a connection of its own, as through an ingress."""

import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import httpx

_PATHS = ("/healthz", "/readyz", "/signin/", "/api/v1/services", "/static/app.js")
_PAGE = "/services/"
_PAUSE_S = 0.05


class Visitors:
    """Ask while the block runs; afterwards `failures` says what went wrong, of `asked` requests."""

    def __init__(self, url: str, host: str, token: str, *, signed_in: bool = False) -> None:
        """Ask with a token; or, `signed_in` with it, for a page as a browser does, which no other session opens."""
        self._url = url
        self._headers: Mapping[str, str] = {"host": host, "connection": "close"}
        self._paths: tuple[str, ...] = _PATHS
        self._cookies = httpx.Cookies()
        if signed_in:
            self._paths, self._cookies = (_PAGE,), self._sign_in(token)
        else:
            self._headers = {**self._headers, "authorization": f"Bearer {token}"}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._visit, name="visitors")
        self.asked = 0
        self.failures: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def until_asked(self, more: int, *, within_s: float) -> None:
        """Wait until so many more requests were answered."""
        wanted, deadline = self.asked + more, time.monotonic() + within_s
        while self.asked < wanted:
            assert time.monotonic() < deadline, f"not within {within_s:g} s: {wanted} requests, but {self.asked}"
            time.sleep(_PAUSE_S)

    def _sign_in(self, token: str) -> httpx.Cookies:
        with httpx.Client(base_url=self._url, headers=self._headers, timeout=60, trust_env=False) as client:
            client.get("/signin/").raise_for_status()
            form = {"token": token, "csrfmiddlewaretoken": client.cookies["csrftoken"]}
            assert client.post("/signin/", data=form).is_redirect
            assert client.get(_PAGE).status_code == 200
            return client.cookies

    def _visit(self) -> None:
        while not self._over.wait(_PAUSE_S):
            path = self._paths[self.asked % len(self._paths)]
            try:
                answer = httpx.get(
                    f"{self._url}{path}", headers=self._headers, cookies=self._cookies, timeout=60, trust_env=False
                )
            except httpx.HTTPError as error:
                self.failures.append(f"{path}: {error!r}")
            else:
                if answer.status_code != 200:
                    self.failures.append(f"{path}: {answer.status_code} {answer.text[:200]}")
            self.asked += 1
