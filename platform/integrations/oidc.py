"""OpenID Connect sign-in: authorization code with PKCE, state and nonce. The only importer of Authlib.

The provider's metadata and keys are read for each sign-in: sign-ins are rare, and providers rotate their keys. Authlib
is imported at the first one, since it takes a tenth of the start of the web process.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import requests
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from common.errors import NotAuthenticated, Unavailable

if TYPE_CHECKING:
    from authlib.integrations.django_client import DjangoOAuth2App

_TIMEOUT_S = 10.0
_LONGEST_REASON = 200
_OFFLINE = "offline_access"
_CLIENT = "provider"
_PAGE, _ASKED_OFFLINE = "page", "asked_offline"
"""What the session keeps of a sign-in beside Authlib's values, under the same `state`: tabs sign in side by side."""
_SCOPE_REFUSALS = {"invalid_scope", "not_allowed", "unauthorized_client"}
_FOR_NOW = {"temporarily_unavailable", "server_error"}
"""Of RFC 6749, section 4.1.2.1: they say nothing about the account."""


class AccountGone(NotAuthenticated):
    """The provider no longer renews the proof of an account: it was removed, disabled, or its consent withdrawn."""


class ScopeRefused(NotAuthenticated):
    """The provider does not give this client, or this person, a scope in the request."""


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


@dataclass(frozen=True, slots=True)
class SignIn:
    """The provider's checked answer about the user who returns from it.

    Attributes:
        refresh_token: what `renewal` takes; empty where the provider gave none that outlives its own session.
    """

    claims: Mapping[str, Any]
    refresh_token: str


def configured() -> Provider | None:
    """Return the provider of the settings; None where none is set up."""
    if not settings.OIDC_ISSUER:
        return None
    return Provider(
        issuer=settings.OIDC_ISSUER,
        client_id=settings.OIDC_CLIENT_ID,
        client_secret=settings.OIDC_CLIENT_SECRET,
        scopes=tuple(settings.OIDC_SCOPES),
    )


def begin(
    request: HttpRequest, provider: Provider, *, back_to: str, page: str = "", is_offline: bool = True
) -> HttpResponse:
    """Return the redirect to the provider; the session keeps the values that its answer is checked against.

    Args:
        back_to: the full redirect URL, as registered at the provider.
        page: what `page_of` returns when the user comes back.
        is_offline: requests a refresh token too, where the provider offers the scope `offline_access`.

    Raises:
        Unavailable: the provider does not answer, or is no OpenID provider.
    """
    with _errors_of(provider):
        client = _client(provider)
        scopes = [scope for scope in provider.scopes if is_offline or scope != _OFFLINE]
        if is_offline and _OFFLINE not in scopes and _OFFLINE in client.server_metadata.get("scopes_supported", ()):
            scopes.append(_OFFLINE)
        client.client_kwargs["scope"] = " ".join(scopes)
        begun = client.create_authorization_url(back_to)
        kept = {_PAGE: page, _ASKED_OFFLINE: _OFFLINE in scopes}
        client.save_authorize_data(request, redirect_uri=back_to, **kept, **begun)
    return HttpResponseRedirect(begun["url"])


def page_of(request: HttpRequest) -> str:
    """Return the page that the sign-in began with whose answer this request has; read it before `finish`."""
    return str(_begun(request).get(_PAGE, ""))


def finish(request: HttpRequest, provider: Provider, *, wanted: frozenset[str]) -> SignIn:
    """Return the checked answer about the user who returns from the provider.

    Args:
        wanted: claims requested from the provider's userinfo where its ID token does not have them.

    Raises:
        ScopeRefused: the request had the scope of refresh tokens, which the provider does not give.
        NotAuthenticated: refused there, or not begun in this browser, or the answer cannot be trusted.
        Unavailable: the provider does not answer.
    """
    asked_offline = bool(_begun(request).get(_ASKED_OFFLINE))
    with _errors_of(provider, asked_offline=asked_offline):
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
    return SignIn(claims, str(token.get("refresh_token") or "") if asked_offline else "")


def renewal(provider: Provider) -> Callable[[str], str]:
    """Return a function that renews a refresh token at the provider, and returns the one to use next.

    It raises AccountGone where the provider refuses the token itself, NotAuthenticated for an answer that says nothing
    of the account, and Unavailable without an answer.

    Raises:
        Unavailable: the provider does not answer.
    """
    from authlib.integrations.base_client.errors import OAuthError  # noqa: PLC0415

    with _errors_of(provider):
        client = _client(provider)

    def renew(refresh_token: str) -> str:
        with _errors_of(provider):
            try:
                token = client.fetch_access_token(grant_type="refresh_token", refresh_token=refresh_token)
            except OAuthError as error:
                if error.error != "invalid_grant":
                    raise
                raise AccountGone(f"{provider.host} no longer confirms the account: {_reason(error)}") from error
            return str(token.get("refresh_token") or refresh_token)

    return renew


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


def _begun(request: HttpRequest) -> Mapping[str, Any]:
    """Return what the session keeps of the sign-in whose answer this request has; empty for none."""
    from authlib.integrations.django_client import DjangoIntegration  # noqa: PLC0415

    return DjangoIntegration(_CLIENT).get_state_data(request.session, request.GET.get("state")) or {}


def _client(provider: Provider) -> "DjangoOAuth2App":
    """Return Authlib's client with the provider's metadata loaded."""
    from authlib.integrations.django_client import OAuth  # noqa: PLC0415

    client = OAuth().register(
        _CLIENT,
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
def _errors_of(provider: Provider, *, asked_offline: bool = False) -> Iterator[None]:
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
        if error.error in _FOR_NOW:
            raise Unavailable(f"{host} did not finish the sign-in: {_reason(error)}; begin it again") from error
        kind = ScopeRefused if asked_offline and error.error in _SCOPE_REFUSALS else NotAuthenticated
        raise kind(f"{host} refused the sign-in: {_reason(error)}") from error
    except (AuthlibBaseError, JoseError, RuntimeError, KeyError, ValueError) as error:
        reason = str(error)[:_LONGEST_REASON]
        raise NotAuthenticated(f"the answer of {host} cannot be trusted: {reason}; begin the sign-in again") from error


def _reason(error: Any) -> str:
    """Return what the provider's error says, shortened."""
    return " ".join(filter(None, [error.error, error.description]))[:_LONGEST_REASON]
