"""Streams a model file from a request's body into the artifact store, in chunks of bounded memory."""

import re

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, UnreadablePostError
from rest_framework.exceptions import UnsupportedMediaType

from common.errors import InvalidInput, TooLarge, Unavailable
from common.http.asgi import allow_body
from integrations.artifacts.store import ArtifactStore, ArtifactWriter, StoredArtifact, digest_of
from registry.services.quotas import body_limit, check_quota, is_registered
from registry.storage import store
from serving_runtime.shared.model_files import stored_name

MEDIA_TYPE = "application/octet-stream"
SHA256_HEADER = "X-Content-SHA256"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_CHUNK_BYTES = 1 << 20
_MAX_FILENAME = 255


def receive(request: HttpRequest, store: ArtifactStore, *, filename: str = "") -> StoredArtifact:
    """Store the body of `request` and return the artifact; on any error nothing is kept.

    Args:
        filename: determines the format; empty to take it from the request's query.

    Raises:
        InvalidInput: the file name, a header or the body is wrong, or the body ended early.
        UnsupportedMediaType: the body is a form, or not the file's bytes.
        TooLarge: more bytes than the store allows; raised before reading if the request announces its length.
        Unavailable: the store cannot accept the bytes now.
    """
    _check_media_type(request)
    filename = filename or _filename(request)
    announced = _announced_bytes(request, store.max_bytes)
    expected_sha256 = _expected_sha256(request)
    allow_body(request, store.max_bytes)
    try:
        with store.begin(filename) as writer:
            _copy(request, writer)
            if announced is not None and writer.size_bytes != announced:
                raise InvalidInput(f"the body ended after {writer.size_bytes} of {announced} bytes; send it again")
            if expected_sha256 is not None and writer.sha256 != expected_sha256:
                raise InvalidInput(
                    f"the body's sha256 is {writer.sha256}, but {SHA256_HEADER} says {expected_sha256}; send it again",
                    field=SHA256_HEADER,
                )
            return writer.commit()
    except RequestDataTooBig as error:
        raise TooLarge(f"the model file has more than the {store.max_bytes} bytes that are allowed") from error
    except UnreadablePostError as error:
        raise InvalidInput(f"the body could not be read to its end: {error}") from error
    except OSError as error:
        raise Unavailable(f"the model file could not be stored: {error.strerror or error}") from error


def receive_within_quota(request: HttpRequest, *, model: str) -> StoredArtifact:
    """Store the body as `receive` does, no more of it than the quota of the team that owns the model has room for.

    Files that the model has already are taken whatever the quota, as far as a single file's announced SHA-256 shows it.

    Raises:
        QuotaExceeded: at once by the announced length, else when the body is longer than the room.
    """
    if _is_registered(request, model):
        return receive(request, store())
    length = request.headers.get("Content-Length", "")
    room = check_quota(model=model, size_bytes=int(length) if length.isascii() and length.isdecimal() else 0)
    try:
        return receive(request, store(most_bytes=None if room is None else body_limit(room)))
    except TooLarge:
        if room is not None:
            check_quota(model=model, size_bytes=room + 1)
        raise


def _is_registered(request: HttpRequest, model: str) -> bool:
    name, sha256 = stored_name(request.GET.get("filename", "")), request.headers.get(SHA256_HEADER, "").lower()
    return bool(name and _SHA256.fullmatch(sha256)) and is_registered(model=model, digest=digest_of({name: sha256}))


def _copy(request: HttpRequest, writer: ArtifactWriter) -> None:
    while chunk := request.read(_CHUNK_BYTES):
        writer.write(chunk)


def _filename(request: HttpRequest) -> str:
    filename = request.GET.get("filename", "")
    if not filename:
        raise InvalidInput("filename is missing; add ?filename=model.onnx to the address", field="filename")
    if len(filename) > _MAX_FILENAME:
        raise InvalidInput(
            f"filename has {len(filename)} characters; at most {_MAX_FILENAME} are taken", field="filename"
        )
    return filename


def _check_media_type(request: HttpRequest) -> None:
    """Raise UnsupportedMediaType for a form or any other type, with the command that sends only the bytes."""
    found = (request.content_type or "")[:100]
    if found == MEDIA_TYPE:
        return
    is_form = found == "multipart/form-data"
    what = f"the body is a form ({found})" if is_form else f"the content type is {found or 'absent'!r}"
    address = request.build_absolute_uri(request.path) + "?filename=model.onnx"
    raise UnsupportedMediaType(
        found,
        detail=f"{what}; send the file's bytes as {MEDIA_TYPE} and nothing around them, with the file's name in the "
        f"address: curl --data-binary @model.onnx -H 'Content-Type: {MEDIA_TYPE}' '{address}'",
    )


def _announced_bytes(request: HttpRequest, limit: int) -> int | None:
    """Return the announced length of the body in bytes; None for a chunked body."""
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise InvalidInput(
            f"Content-Encoding is {encoding[:40]!r}; send the file's bytes as they are", field="Content-Encoding"
        )
    text = request.headers.get("Content-Length", "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()):
        raise InvalidInput(f"Content-Length is {text[:40]!r}; expected a number of bytes", field="Content-Length")
    if int(text) > limit:
        raise TooLarge(f"the model file has {text} bytes, more than the {limit} bytes that are allowed")
    return int(text)


def _expected_sha256(request: HttpRequest) -> str | None:
    value = request.headers.get(SHA256_HEADER)
    if value is None:
        return None
    if not _SHA256.fullmatch(value.lower()):
        raise InvalidInput(f"{SHA256_HEADER} is {value[:80]!r}; expected 64 hex digits", field=SHA256_HEADER)
    return value.lower()
