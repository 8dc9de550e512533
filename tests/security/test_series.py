"""A policy's query reads the series of its own service, however it is written; only an administrator's reads others."""

import importlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.apps import apps
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.test import APIClient

from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from accounts.services import teams, token_create, user_get_or_create
from deployments.domain.policy import Metric
from deployments.domain.policy.series import NotUnderstoodError, limited
from deployments.models import RolloutPolicy
from deployments.reconcile.participants.metric_queries import Side, Subject, look_where_due
from integrations.metrics.prometheus import Prometheus

OWN = {"namespace": "mine", "service": "digits"}
ONLY = '{namespace="mine",service="digits"'
SUBJECT = Subject("mine", "digits", Side("digits-00002", 2), Side("digits-00001", 1))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("secret", f"secret {ONLY}}}", id="a name"),
        pytest.param('{__name__=~".+"}', f'{ONLY},__name__=~".+"}}', id="every name"),
        pytest.param('secret{namespace="theirs"}', f'secret {ONLY},namespace="theirs"}}', id="their namespace"),
        pytest.param('secret{service=~".*",}', f'secret {ONLY},service=~".*"}}', id="any service"),
        pytest.param('{"secret.name"}', f'{ONLY},"secret.name"}}', id="a name in quotes"),
        pytest.param("secret{a='}'}", f'secret {ONLY},a="}}"}}', id="a brace in a text"),
        pytest.param("a # {\n + secret", f"a {ONLY}}} + secret {ONLY}}}", id="a brace in a comment"),
        pytest.param("sum(secret) BY (a)", f"sum ( secret {ONLY}}} ) BY ( a )", id="an aggregation"),
        pytest.param("sum by (a, b) (secret)", f"sum by ( a , b ) ( secret {ONLY}}} )", id="labels first"),
        pytest.param("rate(secret[5m:1m] offset -1h)", f"rate ( secret {ONLY}}} [5m:1m] offset -1h )", id="a subquery"),
        pytest.param("1 or on() secret @ end()", f"1 or on ( ) secret {ONLY}}} @ end ( )", id="an operator"),
        pytest.param("sum", f"sum {ONLY}}}", id="a metric called as a function is"),
        pytest.param("a * on(x) group_left(y) b", f"a {ONLY}}} * on ( x ) group_left ( y ) b {ONLY}}}", id="a join"),
    ],
)
def test_each_selector_is_limited(query: str, expected: str) -> None:
    assert limited(query, OWN) == expected


@pytest.mark.parametrize(
    "query",
    [
        '{a="b" or namespace="theirs"}',
        "WITH (x = secret) x",
        'a{b="\\u007d"} or secret',
        "a secret",
        "a limit 5 secret",
        "sum(a) keep_metric_names",
        "a{b=c}",
        "a\\-b",
        "rate(a[secret])",
        "a offset secret",
        "a}+secret{",
        "by",
        "(" * 60 + "a" + ")" * 60,
        "",
    ],
)
def test_what_is_not_understood_is_refused(query: str) -> None:
    with pytest.raises(NotUnderstoodError):
        limited(query, OWN)


PARTS = [
    "secret",
    "sum",
    "by",
    "(",
    ")",
    "{",
    "}",
    "[5m]",
    ",",
    "=",
    '"x"',
    "'",
    "#",
    "\n",
    "offset",
    "or",
    "+",
    "1",
    "@",
    "a",
]


@given(st.lists(st.sampled_from(PARTS), max_size=12).map(" ".join))
def test_no_mixture_of_parts_leaves_a_metric_alone(query: str) -> None:
    try:
        found = limited(query, OWN)
    except NotUnderstoodError:
        return
    words = found.split(" ")
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word == "secret":
            assert after.startswith(ONLY) or _is_label_of_a_list(words)


def _is_label_of_a_list(words: list[str]) -> bool:
    return any(word in ("by", "without", "on") for word in words)


def test_a_deployers_query_is_asked_with_the_services_labels() -> None:
    metric = Metric("m", "sum(secret) / sum(rate({__name__=~'.+'}[{{interval}}]))", maximum=1.0)
    with prometheus() as (ask, asked):
        look_where_due([metric], {}, SUBJECT, ask, now=0.0)
        looks = look_where_due([metric], {}, SUBJECT, ask, now=0.0)
        look_where_due([metric], looks, SUBJECT, ask, now=1e9)
    assert asked == [f'sum ( secret {ONLY}}} ) / sum ( rate ( {ONLY},__name__=~".+"}} [10s] ) )']


def test_a_stored_query_that_cannot_be_limited_is_not_asked_and_says_why() -> None:
    metric = Metric("m", "secret limit 5", maximum=1.0)
    with prometheus() as (ask, asked):
        looks = look_where_due([metric], {}, SUBJECT, ask, now=0.0)
        looks = look_where_due([metric], looks, SUBJECT, ask, now=1e9)
    assert asked == []
    assert "cannot be limited to the service's own series" in looks["m"].problem


def policy(**metric: object) -> dict[str, Any]:
    gate = {"metrics": [{"name": "m", "query": "secret", "max": 1, **metric}], "deadline": "1h"}
    return {"name": "nosy", "steps": [{"weight": 10, "analysis": gate}]}


def caller(role: Role, name: str = "dora") -> APIClient:
    user_get_or_create(username="root", now=timezone.now())  # makes the default team
    user = user_get_or_create(username=name, default_role=None, now=timezone.now())
    now = timezone.now()
    teams.member_set(team="default", username=name, role=role, actor="test", now=now)
    hour = timedelta(hours=1)
    made = token_create(user=user, name=name, scope=Scope.ADMIN, lifetime=hour, now=now, actor="test")
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {made.secret}")
    return client


@pytest.mark.django_db
def test_a_deployer_may_not_ask_for_all_series() -> None:
    deployer, path = caller(Role.DEPLOYER), "/api/v1/policies/nosy"
    refused = deployer.put(path, policy(series="all"), format="json")
    assert (refused.status_code, "series: all" in refused.content.decode()) == (403, True)
    assert deployer.put(f"{path}?dry_run=true", policy(series="all"), format="json").status_code == 403
    assert deployer.put(path, policy(query="secret limit 5"), format="json").status_code == 400
    assert not RolloutPolicy.objects.exists()
    assert caller(Role.ADMIN, "root").put(path, policy(series="all"), format="json").status_code == 201
    assert deployer.put(path, policy(series="all", query="other"), format="json").status_code == 403
    assert deployer.put(path, policy(series="all"), format="json").status_code == 200, "the same again changes nothing"


@pytest.mark.django_db
@pytest.mark.parametrize(("role", "version"), [(Role.ADMIN, 1), (Role.DEPLOYER, None)])
def test_stored_policies_keep_what_their_author_may(role: Role, version: int | None) -> None:
    assert caller(role).put("/api/v1/policies/nosy", policy(), format="json").status_code == 201
    assert AuditEntry.objects.filter(action="policy.apply").exists()
    before = RolloutPolicy.objects.get().document
    migration = importlib.import_module("deployments.migrations.0048_series_of_policies")
    migration.let_administrators_queries_be(apps, None)
    saved = RolloutPolicy.objects.get()
    assert (saved.all_series_version, saved.document) == (version, before), "an earlier release reads the document"


@contextmanager
def prometheus() -> Iterator[tuple[Any, list[str]]]:
    """Yield what asks a server that answers 1, and the queries that come to it."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
            asked.extend(form["query"])
            body = json.dumps({"status": "success", "data": {"resultType": "scalar", "result": [0, "1"]}}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield Prometheus(f"http://127.0.0.1:{server.server_port}").ask, asked
        server.shutdown()
        thread.join()
