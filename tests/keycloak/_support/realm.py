"""A realm of Keycloak as an administrator would make it for Fairlead, and what a test changes there."""

import base64
import json
from dataclasses import dataclass
from typing import Any

import httpx

from tests.keycloak._support.server import Json, Keycloak

CLIENT_ID, CLIENT_SECRET = "fairlead", "a-secret-of-the-tests"
AUDIENCE = "models"
CALLER_SECRET = "a-secret-of-a-caller"
PASSWORD = "a-password-of-the-tests"
_OPENID = "openid-connect"


@dataclass(frozen=True, slots=True)
class Realm:
    """A realm of a running server."""

    server: Keycloak
    name: str

    @property
    def issuer(self) -> str:
        """Return `iss` of its tokens."""
        return f"{self.server.url}/realms/{self.name}"

    def admin(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """Return the answer of the admin API about the realm."""
        return self.server.admin(method, f"realms/{self.name}/{path}", body)

    def add_user(self, username: str, *, groups: tuple[str, ...] = (), **fields: Any) -> str:
        """Return the id, which is `sub`, of a new user, who has an address that is verified unless a field says so."""
        password = {"type": "password", "value": PASSWORD, "temporary": False}
        user = {
            "username": username,
            "enabled": True,
            "email": f"{username}@example.com",
            "emailVerified": True,
            "firstName": username,
            "lastName": "Example",
            "credentials": [password],
            "groups": list(groups),
        }
        made = self.admin("POST", "users", user | fields)
        return made.headers["Location"].rpartition("/")[2]

    def change_user(self, subject: str, **fields: Any) -> None:
        """Change fields of a user."""
        self.admin("PUT", f"users/{subject}", self.admin("GET", f"users/{subject}").json() | fields)

    def change_client(self, client_id: str, **fields: Any) -> None:
        """Change fields of a client."""
        (found,) = self.admin("GET", f"clients?clientId={client_id}").json()
        self.admin("PUT", f"clients/{found['id']}", found | fields)

    def add_mapper(self, kind: str, claim: str, *, id_token: bool = True, **config: str) -> None:
        """Let a mapper of the client for people write a claim; without `id_token` userinfo alone has it."""
        written = {"claim.name": claim, "id.token.claim": str(id_token).lower(), "userinfo.token.claim": "true"}
        mapper = {"name": claim, "protocol": _OPENID, "protocolMapper": kind, "config": written | config}
        self.admin("POST", f"clients/{self.client_key(CLIENT_ID)}/protocol-mappers/models", mapper)

    def remove_mapper_of_scope(self, scope: str, name: str) -> None:
        """Remove a mapper of a client scope."""
        models = f"client-scopes/{self.scope_id(scope)}/protocol-mappers/models"
        (found,) = (each["id"] for each in self.admin("GET", models).json() if each["name"] == name)
        self.admin("DELETE", f"{models}/{found}")

    def take_role(self, subject: str, name: str) -> None:
        """Take a role of the realm from a user."""
        self.admin("DELETE", f"users/{subject}/role-mappings/realm", [self.admin("GET", f"roles/{name}").json()])

    def scope_id(self, name: str) -> str:
        """Return the id of a client scope."""
        return next(str(each["id"]) for each in self.admin("GET", "client-scopes").json() if each["name"] == name)

    def client_key(self, client_id: str) -> str:
        """Return the id of a client in the admin API."""
        return str(self.admin("GET", f"clients?clientId={client_id}").json()[0]["id"])

    def service_account(self, client_id: str) -> str:
        """Return `sub` of a client's tokens."""
        return str(self.admin("GET", f"clients/{self.client_key(client_id)}/service-account-user").json()["id"])

    def add_key(self, *, priority: int, is_active: bool = True) -> str:
        """Add an RSA key, and return its id in the admin API; the active one with the highest priority signs."""
        parent = str(self.server.admin("GET", f"realms/{self.name}").json()["id"])
        config = {"priority": [str(priority)], "enabled": ["true"], "active": [str(is_active).lower()]}
        key = {
            "name": f"rsa-{priority}",
            "providerId": "rsa-generated",
            "providerType": "org.keycloak.keys.KeyProvider",
            "parentId": parent,
            "config": config | {"algorithm": ["RS256"]},
        }
        return self.admin("POST", "components", key).headers["Location"].rpartition("/")[2]

    def change_key(self, key: str, **config: str) -> None:
        """Change settings of a key."""
        found = self.admin("GET", f"components/{key}").json()
        changed = {name: [value] for name, value in config.items()}
        self.admin("PUT", f"components/{key}", found | {"config": found["config"] | changed})

    @staticmethod
    def signed_by(token: str) -> str:
        """Return the id of the key that signed a token."""
        head = token.split(".", maxsplit=1)[0]
        return str(json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))["kid"])

    def tokens_of_person(self) -> dict[str, str]:
        """Return an ID token and a refresh token of a person, by the password."""
        self.change_client(CLIENT_ID, directAccessGrantsEnabled=True)
        if not self.admin("GET", "users?username=alice&exact=true").json():
            self.add_user("alice")
        form = {"grant_type": "password", "scope": "openid", "username": "alice", "password": PASSWORD}
        secret = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
        answer = httpx.post(f"{self.issuer}/protocol/openid-connect/token", data=form | secret, timeout=60)
        assert answer.is_success, answer.text
        return dict(answer.json())

    def token(self, client_id: str) -> str:
        """Return an access token of a client's service account."""
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": CALLER_SECRET}
        answer = httpx.post(f"{self.issuer}/protocol/openid-connect/token", data=form, timeout=60)
        assert answer.is_success, answer.text
        return str(answer.json()["access_token"])


def make_realm(server: Keycloak, name: str, *, fairlead: str) -> Realm:
    """Import a realm with a client for people, one for callers of models, one without their audience, and groups.

    Args:
        fairlead: the control plane's address.
    """
    server.admin("POST", "realms", _document(name, fairlead))
    return Realm(server, name)


def _document(name: str, fairlead: str) -> Json:
    return {
        "realm": name,
        "enabled": True,
        "sslRequired": "none",
        "editUsernameAllowed": True,
        "groups": [{"name": "ml-admins"}, {"name": "vision"}],
        "clients": [
            {
                "clientId": CLIENT_ID,
                "secret": CLIENT_SECRET,
                "standardFlowEnabled": True,
                "directAccessGrantsEnabled": False,
                "redirectUris": [f"{fairlead}/signin/provider/back"],
                "attributes": {
                    "pkce.code.challenge.method": "S256",
                    "post.logout.redirect.uris": f"{fairlead}/signin/",
                },
                "protocolMappers": [_groups_mapper()],
            },
            _caller("nightly", [_audience_mapper()]),
            _caller("elsewhere", []),
        ],
    }


def _caller(client_id: str, mappers: list[Json]) -> Json:
    return {
        "clientId": client_id,
        "secret": CALLER_SECRET,
        "serviceAccountsEnabled": True,
        "standardFlowEnabled": False,
        "protocolMappers": mappers,
    }


def _groups_mapper() -> Json:
    """Return the mapper "Group Membership" with "Full group path" off, which would write /ml-admins."""
    config = {"claim.name": "groups", "full.path": "false", "id.token.claim": "true", "userinfo.token.claim": "true"}
    return {"name": "groups", "protocol": _OPENID, "protocolMapper": "oidc-group-membership-mapper", "config": config}


def _audience_mapper() -> Json:
    config = {"included.custom.audience": AUDIENCE, "access.token.claim": "true", "id.token.claim": "false"}
    return {"name": "models", "protocol": _OPENID, "protocolMapper": "oidc-audience-mapper", "config": config}
