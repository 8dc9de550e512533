"""`Idempotency-Key` on POST: a repeated request has no further effect and returns the first response.

The key, the request's effect and its response are written in one transaction. So a concurrent request with the same key
waits for the first, a crash leaves neither effect nor key, and a rejected request, which changed nothing, may be
corrected and sent again with the same key.
"""

import hashlib
import json
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import Any

from django.db import transaction
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.auth.permissions import caller_token
from accounts.models import AnsweredRequest
from accounts.services import ANSWERS_KEPT_FOR
from common.errors import Conflict, InvalidInput

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
_MAX_KEY = 255
_SHA256 = "X-Content-SHA256"
_PARAMETER = OpenApiParameter(
    HEADER,
    {"type": "string", "minLength": 1, "maxLength": _MAX_KEY, "pattern": "^[!-~]+$"},
    OpenApiParameter.HEADER,
    description="Key of the request. Within 24 hours, the same request with the same key has no further effect and "
    "returns the first response.",
)
Handler = Callable[..., Response]


def idempotent(
    *, has_secret: bool = False, is_streamed: bool = False, asks_outside: bool = False
) -> Callable[[Handler], Handler]:
    """Make a view's `post` idempotent by the header; must be the outermost decorator.

    Args:
        has_secret: the response is not stored, so a repeated request is rejected.
        is_streamed: the body is a file that is streamed outside of a transaction. Its SHA-256, which the request must
            announce, identifies it, and the view itself must accept the same file twice without harm.
        asks_outside: no transaction is open, since the view waits for an external system; concurrent identical requests
            must be harmless.
    """
    is_apart = is_streamed or asks_outside

    def decorate(post: Handler) -> Handler:
        @wraps(post)
        def wrapped(view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
            key = request.headers.get(HEADER)
            if key is None:
                return post(view, request, *args, **kwargs)
            _check(key)
            wanted = {"user": caller_token(request).user, "key": key}
            fingerprint = _announced(request) if is_streamed else _fingerprint(request, request._request.body)
            with nullcontext() if is_apart else transaction.atomic():
                known = _known(wanted, fingerprint, claim=not is_apart)
                if known is not None:
                    return _replay(known, fingerprint)
                response = post(view, request, *args, **kwargs)
                body = "" if has_secret else JSONRenderer().render(response.data).decode()
                AnsweredRequest.objects.update_or_create(
                    **wanted,
                    defaults={"status": response.status_code, "body": body},
                    create_defaults={
                        **wanted,
                        "fingerprint": fingerprint,
                        "status": response.status_code,
                        "body": body,
                        "created_at": timezone.now(),
                    },
                )
            return response

        return extend_schema(parameters=[_PARAMETER])(wrapped)

    return decorate


def _check(key: str) -> None:
    if not 0 < len(key) <= _MAX_KEY or not all("!" <= sign <= "~" for sign in key):
        raise InvalidInput(
            f"{HEADER} is {key[:60]!r}; expected 1 to {_MAX_KEY} visible ASCII characters, such as a UUID", field=HEADER
        )


def _known(wanted: dict[str, Any], fingerprint: str, *, claim: bool) -> AnsweredRequest | None:
    """Return the request with the key; None if the key is free; `claim` then reserves it."""
    now = timezone.now()
    AnsweredRequest.objects.filter(**wanted, created_at__lte=now - ANSWERS_KEPT_FOR).delete()
    if not claim:
        return AnsweredRequest.objects.filter(**wanted).first()
    row, created = AnsweredRequest.objects.get_or_create(
        **wanted, defaults={"fingerprint": fingerprint, "created_at": now}
    )
    return None if created else row


def _replay(known: AnsweredRequest, fingerprint: str) -> Response:
    if known.fingerprint != fingerprint:
        raise Conflict(
            f"{HEADER} {known.key[:60]!r} was used for another request; send this one with a key of its own",
            field=HEADER,
        )
    if not known.body:
        raise Conflict(
            f"the request with {HEADER} {known.key[:60]!r} was answered with {known.status}, and its answer has a "
            "secret, which is not kept; if it got lost, revoke what was made and ask again with another key",
            field=HEADER,
        )
    return Response(json.loads(known.body), status=known.status, headers={REPLAYED: "true"})


def _announced(request: Request) -> str:
    """Return the fingerprint of an upload from its announced SHA-256."""
    sha256 = request.headers.get(_SHA256)
    if not sha256:
        raise InvalidInput(
            f"an upload with {HEADER} needs the header {_SHA256} too, which identifies the file", field=_SHA256
        )
    return _fingerprint(request, sha256.lower().encode())


def _fingerprint(request: Request, body: bytes) -> str:
    address = f"{request.method} {request.get_full_path()}\n".encode()
    return hashlib.sha256(address + body).hexdigest()
