"""OpenID Connect sign-in: authorization code with PKCE, state and nonce. The only importer of Authlib.

The provider's metadata and keys are read for each sign-in: sign-ins are rare, and providers rotate their keys. Authlib
is imported at the first one, since it takes a tenth of the start of the web process.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import requests
from django.http import HttpRequest, HttpResponse

from common.errors import NotAuthenticated, Unavailable

if TYPE_CHECKING:
    from authlib.integrations.django_client import DjangoOAuth2App

_TIMEOUT_S = 10.0
_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True)
class Provider:
    """An OpenID provider, and this installation as its client.

    Attributes:
        issuer: its URL without a trailing slash; `/.well-known/openid-configuration` below it has the rest.
        scopes: requested scopes; `openid` among them.
    """

    issuer: str
    client_id: str
    client_secret: str
    scopes: tuple[str, ...]

    @property
    def host(self) -> str:
        """Return the host that pages show for signing in."""
        return urlsplit(self.issuer).netloc


def begin(request: HttpRequest, provider: Provider, *, back_to: str) -> HttpResponse:
    """Return the redirect to the provider; the session keeps the values that its answer is checked against.

    Args:
        back_to: the full redirect URL, as registered at the provider.

    Raises:
        Unavailable: the provider does not answer, or is no OpenID provider.
    """
    with _errors_of(provider):
        answer: HttpResponse = _client(provider).authorize_redirect(request, back_to)
    return answer


def finish(request: HttpRequest, provider: Provider, *, wanted: frozenset[str]) -> Mapping[str, Any]:
    """Return the checked claims about the user who returns from the provider.

    Args:
        wanted: claims requested from the provider's userinfo where its ID token does not have them.

    Raises:
        NotAuthenticated: refused there, or not begun in this browser, or the answer cannot be trusted.
        Unavailable: the provider does not answer.
    """
    with _errors_of(provider):
        client = _client(provider)
        token = client.authorize_access_token(request)
        claims = dict(token.get("userinfo") or {})
        if not claims.get("sub"):
            raise NotAuthenticated(f"{provider.host} sent no ID token; let the client there have the scope openid")
        if wanted - claims.keys() and client.server_metadata.get("userinfo_endpoint"):
            more = client.userinfo(token=token)
            if more.get("sub") != claims["sub"]:
                raise NotAuthenticated(f"{provider.host} described another person than the one who signed in there")
            claims = {**more, **claims}
    return claims


def signout_url(provider: Provider, *, back_to: str) -> str | None:
    """Return the provider's sign-out URL for a browser; None where it has none.

    Raises:
        Unavailable: the provider does not answer.
    """
    with _errors_of(provider):
        client = _client(provider)
        if not client.server_metadata.get("end_session_endpoint"):
            return None
        url: str = client.create_logout_url(post_logout_redirect_uri=back_to, client_id=provider.client_id)["url"]
    return url


def _client(provider: Provider) -> "DjangoOAuth2App":
    """Return Authlib's client with the provider's metadata loaded."""
    from authlib.integrations.django_client import OAuth  # noqa: PLC0415

    client = OAuth().register(
        "provider",
        client_id=provider.client_id,
        client_secret=provider.client_secret,
        server_metadata_url=f"{provider.issuer}/.well-known/openid-configuration",
        client_kwargs={
            "scope": " ".join(provider.scopes),
            "code_challenge_method": "S256",
            "default_timeout": _TIMEOUT_S,
        },
    )
    found = str(client.load_server_metadata().get("issuer", "")).rstrip("/")
    if found != provider.issuer:
        raise Unavailable(
            f"the sign-in at {provider.host} is set up wrong: it calls itself {found[:200] or 'nothing'}, "
            f"FAIRLEAD_OIDC_ISSUER says {provider.issuer}"
        )
    return client


@contextmanager
def _errors_of(provider: Provider) -> Iterator[None]:
    """Translate the libraries' errors into ours, as sentences for the user who signs in."""
    from authlib.common.errors import AuthlibBaseError  # noqa: PLC0415
    from authlib.integrations.base_client.errors import MismatchingStateError, OAuthError  # noqa: PLC0415
    from joserfc.errors import JoseError  # noqa: PLC0415

    host = provider.host
    try:
        yield
    except MismatchingStateError as error:
        raise NotAuthenticated(
            "this sign-in did not begin in this browser, or took longer than an hour; begin it again"
        ) from error
    except requests.HTTPError as error:
        status = "an error" if error.response is None else f"status {error.response.status_code}"
        raise Unavailable(f"{host} answered with {status}; try again later, or ask an administrator") from error
    except requests.RequestException as error:
        raise Unavailable(f"{host} does not answer; try again later, or ask an administrator") from error
    except OAuthError as error:
        if error.error == "access_denied":
            raise NotAuthenticated(f"the sign-in was refused or given up at {host}") from error
        reason = " ".join(filter(None, [error.error, error.description]))[:_LONGEST_REASON]
        raise NotAuthenticated(f"{host} refused the sign-in: {reason}") from error
    except (AuthlibBaseError, JoseError, RuntimeError, KeyError, ValueError) as error:
        reason = str(error)[:_LONGEST_REASON]
        raise NotAuthenticated(f"the answer of {host} cannot be trusted: {reason}; begin the sign-in again") from error
