"""What pages say, to somebody who is signed in."""

from django.test import Client

from accounts.domain.scopes import Scope
from tests import scenes

DETAIL = "/services/default/digits/"


def signed_in(scope: Scope = Scope.ADMIN) -> Client:
    client = Client()
    client.post("/signin/", {"token": scenes.token(scope, f"{scope}-user")})
    return client


def text(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode().replace("\N{NO-BREAK SPACE}", " ")
