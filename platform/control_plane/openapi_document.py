"""The OpenAPI document as a file: made at the first request of a process, then served from memory.

The document depends on this release alone, not on the request. Its generator is slow, and fails when several requests
run it at once, so one thread runs it while others wait. Each format has an ETag and a gzip variant.
"""

import gzip
import hashlib
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

_making = threading.Lock()
_made: "dict[type[BaseRenderer], Document]" = {}


@dataclass(frozen=True, slots=True)
class Document:
    """The document in one format.

    Attributes:
        content, gzipped: the same bytes, plain and compressed.
        etag: unquoted; that of the compressed variant ends in `-gzip`.
    """

    content: bytes
    gzipped: bytes
    etag: str


def document(renderer: type[BaseRenderer]) -> Document:
    """Return the document as `renderer` writes it; makes it once per process, others wait meanwhile."""
    with _making:
        if renderer not in _made:
            _made[renderer] = _rendered(renderer)
        return _made[renderer]


def _rendered(renderer: type[BaseRenderer]) -> Document:
    content: Any = renderer().render(_schema(), renderer.media_type, {})
    return Document(content, gzip.compress(content, mtime=0), hashlib.sha256(content).hexdigest()[:32])


@cache
def _schema() -> Any:
    with GENERATOR_STATS.silence():  # its advice is for developers; the tests show it
        return SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]


class DocumentView(SpectacularAPIView):
    """Serves the document in the format that `Accept` or `?format=` names; needs no token."""

    authentication_classes = ()
    permission_classes = ()

    @extend_schema(exclude=True)
    def get(self, request: Request, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Return the document, compressed for clients that accept it; 304 where the client has it already."""
        renderer = request.accepted_renderer
        found = document(type(renderer))
        is_gzipped = accepts_gzip(request._request)
        etag = quote_etag(f"{found.etag}-gzip" if is_gzipped else found.etag)
        charset = f"; charset={renderer.charset}" if renderer.charset else ""
        headers = {
            "Content-Type": f"{renderer.media_type}{charset}",
            "Content-Disposition": f'inline; filename="Fairlead.{renderer.format}"',
            "Cache-Control": "no-cache",
            "ETag": etag,
            "Vary": "Accept, Accept-Encoding",
        }
        if is_gzipped:
            headers["Content-Encoding"] = "gzip"
        response = HttpResponse(found.gzipped if is_gzipped else found.content, headers=headers)
        return get_conditional_response(request._request, etag=etag, response=response) or response


def accepts_gzip(request: HttpRequest) -> bool:
    """Return whether `Accept-Encoding` names gzip, with a weight above 0."""
    for each in request.headers.get("Accept-Encoding", "").lower().split(","):
        coding, _, weight = each.partition(";")
        if coding.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
