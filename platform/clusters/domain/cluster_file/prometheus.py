"""`prometheus` of a cluster file: the server that answers queries about services there. Pure."""

from dataclasses import dataclass, field
from functools import partial

from clusters.domain.cluster_file.connection import STORED
from common.files.document import Document
from common.identifiers import check_tenant, check_web_address, is_confidential

_URL = "where Prometheus answers, such as https://prometheus.example.com"


@dataclass(frozen=True, slots=True)
class PrometheusServer:
    """A cluster's Prometheus, or a server with its API.

    Attributes:
        url: includes any path before `/api/v1/query`, without a trailing slash.
        tenant: sent as `X-Scope-OrgID`; empty sends none.
        authority: PEM of the authorities to trust; empty trusts the machine's.
        token: the bearer token of the file; `stored` for the one that is stored, empty for none.
    """

    url: str
    tenant: str = ""
    authority: str = ""
    token: str = field(default="", repr=False)

    @property
    def is_token_stored(self) -> bool:
        """Return whether the file means the stored token."""
        return self.token == STORED


def parse_prometheus(document: Document) -> PrometheusServer:
    """Return the file's Prometheus."""
    url = document.text("url", check=partial(check_web_address, expected=_URL))
    tenant = document.text("tenant", default="", check=_check_optional_tenant)
    token = document.text("token", default="").strip()
    if not (token.isascii() and token.isprintable()) or " " in token:
        document.fault("token", "has characters that no header can carry; give the token on one line, without spaces")
    elif token and document.is_sound() and not is_confidential(url):
        document.fault("token", "would be sent over http, where others can read it; let prometheus.url begin https://")
    result = PrometheusServer(url, tenant, document.text("certificateAuthority", default="").strip(), token)
    document.refuse_unknown()
    return result


def _check_optional_tenant(text: str, *, field: str) -> str:
    return check_tenant(text, field=field) if text else text
