"""Model lineage: the provenance of a version; given at registration, immutable. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from urllib.parse import urlsplit

from common.errors import InvalidInput

_FETCHED = ("http", "https", "s3", "gs")
_MAX_COMMIT = 100
_MAX_REFERENCE = 2000
_MAX_PARAMETERS = 200
_MAX_KEY = 200
_MAX_VALUE = 1000


@dataclass(frozen=True, slots=True)
class Lineage:
    """Provenance of a version; unknown parts are empty.

    Attributes:
        source_commit: the commit of the training code.
        run_url: the CI run that made the files, http or https, since pages show it as a link.
        data_reference: the training data: a path, a URI, a data set's version.
        parameters: free texts by name, such as hyperparameters.
        source_uri: where the files were imported from, without a query; empty where they were pushed.
        built_from: the version that they were built from, as `models:/digits/3`; empty where they were not built here.
        accelerator, products: the GPU or slice that they were built on, which runs them (`Resources`); empty for any.
    """

    source_commit: str = ""
    run_url: str = ""
    data_reference: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    source_uri: str = ""
    built_from: str = ""
    accelerator: str = ""
    products: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise InvalidInput where a part is too long or of the wrong kind."""
        _check_text("source_commit", self.source_commit, _MAX_COMMIT)
        _check_text("run_url", self.run_url, _MAX_REFERENCE)
        _check_text("data_reference", self.data_reference, _MAX_REFERENCE)
        if self.run_url and not _is_web_address(self.run_url):
            raise InvalidInput(
                f"run_url is {self.run_url[:200]!r}; expected the http or https address of a run", field="run_url"
            )
        if len(self.parameters) > _MAX_PARAMETERS:
            raise InvalidInput(
                f"there are {len(self.parameters)} parameters; at most {_MAX_PARAMETERS} are kept", field="parameters"
            )
        for name, value in self.parameters.items():
            _check_text("the name of a parameter", name, _MAX_KEY, field="parameters", least=1)
            _check_text(f"the parameter {name!r}", value, _MAX_VALUE, field="parameters")

    def as_json(self) -> dict[str, object]:
        """Return the JSON form for storage and display."""
        parts = {"parameters": dict(sorted(self.parameters.items())), "products": list(self.products)}
        return {**asdict(self), **parts}


_FLAGS = {
    "source_commit": ("commit", "--source-commit"),
    "run_url": ("CI run", "--run-url"),
    "data_reference": ("data", "--data"),
}


def unset(lineage: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Return the missing parts of a pushed version's lineage, with the flag of `fairlead models push` for each."""
    if lineage.get("built_from"):
        return ()
    return tuple(reported for name, reported in _FLAGS.items() if not lineage.get(name))


def origin_of(lineage: Mapping[str, object]) -> str:
    """Return where an authorised reader can fetch the files of a stored lineage; empty if nowhere."""
    uri = str(lineage.get("source_uri", ""))
    return uri if urlsplit(uri).scheme in _FETCHED else ""


def _check_text(what: str, text: str, longest: int, *, field: str = "", least: int = 0) -> None:
    if not least <= len(text) <= longest or not text.isprintable():
        raise InvalidInput(
            f"{what} has {len(text)} characters; expected {least} to {longest} printable ones", field=field or what
        )


def _is_web_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)
