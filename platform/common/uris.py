"""URI normalization, and an allowlist of prefixes, for model imports. Pure.

The checked parts are what is requested later: `Address.url` is built from them, never from the original text, so that
two readings of one text cannot differ. Prefixes end at whole parts of a path:
`https://host/models` allows `https://host/models/a.onnx` and not `https://host/models-of-others/a.onnx`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from common.errors import InvalidInput

SETTING = "FAIRLEAD_IMPORT_FROM"
SCHEMES = ("http", "https", "s3", "gs", "file")
LONGEST = 4000
WEB = ("http", "https")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_SHOWN_PREFIXES = 5


@dataclass(frozen=True, slots=True)
class Address:
    """A URI in its normal form.

    Attributes:
        host: in lower case, with the port where it is not the scheme's own; the bucket for s3 and gs, empty for file.
        parts: of the path, decoded where the scheme encodes; none is empty, `.` or `..`, or has a slash in it.
        query: of an http address, as it was sent; it may hold a signature and is not shown.
    """

    scheme: str
    host: str
    parts: tuple[str, ...]
    is_folder: bool = False
    query: str = ""

    @property
    def name(self) -> str:
        """Return the last part of the path."""
        return self.parts[-1] if self.parts else ""

    @property
    def path(self) -> str:
        """Return the decoded path, such as `/srv/models/1` or `models/1`, without a trailing slash."""
        return ("/" if self.scheme == "file" else "") + "/".join(self.parts)

    @property
    def shown(self) -> str:
        """Return the URI without its query."""
        coded = (
            self.parts if self.scheme in ("s3", "gs") else [quote(part, safe="!$&'()*+,;=:@~") for part in self.parts]
        )
        return f"{self.scheme}://{self.host}/{'/'.join(coded)}{'/' if self.is_folder and self.parts else ''}"

    @property
    def url(self) -> str:
        """Return the URI to request."""
        return f"{self.shown}?{self.query}" if self.query else self.shown


def parse(uri: str, *, field: str = "uri") -> Address:
    """Return the address of a file or a folder; a trailing slash marks a folder. Raises InvalidInput."""
    address = _parse(uri, field)
    if len(address.url) > LONGEST:
        raise InvalidInput(f"{field} has more than {LONGEST} characters once it is encoded", field=field)
    if not address.parts:
        raise InvalidInput(
            f"{field} is {uri[:200]!r}, which names no file or folder; give its whole address", field=field
        )
    return address


def parse_prefixes(texts: Sequence[str]) -> tuple[Address, ...]:
    """Return the operator's allowed prefixes; raises InvalidInput with the setting's name."""
    prefixes = tuple(_parse(text, SETTING) for text in texts)
    for prefix in prefixes:
        if prefix.query or (prefix.scheme == "file" and not prefix.parts):
            raise InvalidInput(
                f"{SETTING} has {prefix.url!r}; expected a prefix without a query, and for file a folder below the root"
            )
    return prefixes


def check_allowed(address: Address, allowed: Sequence[Address], *, field: str = "uri") -> None:
    """Raise InvalidInput unless one of the prefixes allows the address."""
    if not allowed:
        raise InvalidInput(
            f"{field} is {address.shown!r}, but importing by URI is switched off; an operator switches it on by "
            f"setting {SETTING} to the prefixes that models may come from, such as "
            "https://models.example.com/,s3://bucket/models/",
            field=field,
        )
    if not any(_is_under(address, prefix) for prefix in allowed):
        shown = ", ".join(prefix.shown for prefix in allowed[:_SHOWN_PREFIXES])
        raise InvalidInput(
            f"{field} is {address.shown!r}, which {SETTING} does not allow (it allows {shown}); ask an operator to "
            "add it, or push the files",
            field=field,
        )


def _is_under(address: Address, prefix: Address) -> bool:
    return (address.scheme, address.host) == (prefix.scheme, prefix.host) and (
        address.parts[: len(prefix.parts)] == prefix.parts
    )


def _parse(uri: str, field: str) -> Address:
    shown = uri.partition("?")[0][:200]  # a query may hold a signature
    if len(uri) > LONGEST or not uri.isprintable() or "\\" in uri:
        raise InvalidInput(
            f"{field} is {shown[:80]!r}; expected a URI of at most {LONGEST} printable characters, without backslashes",
            field=field,
        )
    try:
        split = urlsplit(uri)
        host, port = split.hostname or "", split.port
    except ValueError as error:
        raise InvalidInput(f"{field} is {shown!r}, which is no URI: {error}", field=field) from error
    if split.scheme not in SCHEMES:
        raise InvalidInput(
            f"{field} is {shown!r}; expected one of {', '.join(f'{s}://' for s in SCHEMES)}", field=field
        )
    if "@" in split.netloc:
        raise InvalidInput(
            f"{field} has a user or password in it; the worker's environment holds the credentials", field=field
        )
    is_web = split.scheme in WEB
    if split.fragment or "#" in uri or ("?" in uri and not is_web):
        raise InvalidInput(
            f"{field} is {shown!r}; a query (for {split.scheme}) or a fragment is not taken", field=field
        )
    if split.scheme != "file":
        host = _host(split.netloc if not is_web else host, port, split.scheme, field)
    elif split.netloc not in ("", "localhost") or not split.path.startswith("/"):
        raise InvalidInput(f"{field} is {shown!r}; write a local path as file:///absolute/path", field=field)
    else:
        host = ""
    return Address(
        scheme=split.scheme,
        host=host,
        parts=_parts(split.path, field, is_encoded=split.scheme not in ("s3", "gs")),
        is_folder=split.path.endswith("/"),
        query=split.query,
    )


def _host(host: str, port: int | None, scheme: str, field: str) -> str:
    bare = host.lower() if scheme in WEB else host
    if not bare or not bare.isascii() or set(bare) & set(" %/?#") or bare.endswith("."):
        raise InvalidInput(f"{field} names the host or bucket {host[:80]!r}; expected plain ASCII", field=field)
    if scheme not in WEB:
        return bare
    bare = f"[{bare}]" if ":" in bare else bare
    return bare if port in (None, _DEFAULT_PORTS[scheme]) else f"{bare}:{port}"


def _parts(path: str, field: str, *, is_encoded: bool) -> tuple[str, ...]:
    texts = path.strip("/").split("/") if path.strip("/") else []
    if path.startswith("//") or path.endswith("//"):
        texts.append("")
    parts = tuple(unquote(text, errors="strict") if is_encoded else text for text in texts) if _decodes(path) else ("",)
    for part in parts:
        # The result of a second decoding counts too: some servers decode twice.
        again = unquote(part)
        if again in ("", ".", "..") or set(again) & set("/\\") or not again.isprintable():
            raise InvalidInput(
                f"{field} has the path {path[:200]!r}; expected parts that are not empty, '.' or '..', in UTF-8 and "
                "without coded slashes",
                field=field,
            )
    return parts


def _decodes(path: str) -> bool:
    try:
        unquote(path, errors="strict")
    except UnicodeDecodeError:
        return False
    return True
