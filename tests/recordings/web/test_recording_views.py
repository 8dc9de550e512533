"""The pages of recordings and replays: begun, followed, stopped, deleted, and what came of them."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from accounts.domain.roles import Owned, Role
from accounts.models import AuditEntry
from accounts.services.teams import ownership_set
from clusters.models import Cluster
from deployments.services import rollout_abort
from recordings.models import Recording, Replay
from recordings.reconcile import payload_files
from tests import scenes
from tests._support.page import marked
from tests.accounts._support.pages import Browser, page
from tests.deployments._support.cluster_files import LEAST
from tests.deployments._support.pages import signed_in, text
from tests.deployments._support.platform import Platform
from tests.deployments._support.replays import Scene, exchange

pytestmark = pytest.mark.django_db
LIST = "/services/default/digits/recordings/"
CONSENT = "Our terms of use, section 4, allow us to try new versions on requests."


@pytest.fixture(autouse=True)
def _folder(settings: Settings, tmp_path: Path) -> None:
    settings.RECORDINGS_FOLDER = tmp_path / "recordings"


def begun(client: Client, **said: str) -> tuple[Recording, str]:
    """Return the recording that the form begins, and the address it leads to."""
    answer = client.post(LIST, {"consent": CONSENT, **said})
    assert answer.status_code == 302, answer.content
    return Recording.objects.get(ended_at=None), answer["Location"]


def filled(row: Recording, count: int = 30) -> None:
    """Let a recording hold requests, every tenth with an error."""
    told = [exchange(number, error="" if number % 10 else "no memory") for number in range(count)]
    length = payload_files.append(row.pk, told, at=0)
    Recording.objects.filter(pk=row.pk).update(requests=count, bytes=length)


def test_a_recording_is_begun_with_its_limits_and_again_only_when_it_is_over() -> None:
    scenes.service()
    client = signed_in()
    assert marked(text(client, LIST), "no-recording")
    row, address = begun(client, share_percent="12,5", max_requests="500", max_size_mib="2", retention="72h")
    assert address == f"{LIST}{row.pk}/"
    assert (row.consent, row.share_percent, row.max_requests, row.max_bytes) == (CONSENT, 12.5, 500, 2 << 20)
    assert (row.expires_at - row.created_at).days == 3
    shown = text(client, address)
    for words in ("12.5 %", "of at most 500", CONSENT):
        assert words in shown
    assert marked(shown, "none-came")
    assert marked(shown, "nothing-to-replay")
    listed = text(client, LIST)
    assert "Start recording" not in listed
    assert f"Recording {row.pk} " in marked(listed, "recording-runs")[0]
    assert client.post(LIST, {"consent": CONSENT}).status_code == 409


def test_what_is_left_empty_is_as_the_api_has_it() -> None:
    scenes.service()
    row, _ = begun(signed_in(), share_percent="", max_requests="", max_size_mib="", retention="")
    assert (row.share_percent, row.max_requests, row.max_bytes) == (100.0, 10_000, 1 << 30)
    assert (row.expires_at - row.created_at).days == 7


@pytest.mark.parametrize(
    ("said", "words"),
    [
        pytest.param({"consent": "no"}, "Consent says too little", id="no consent"),
        pytest.param({"share_percent": "all"}, "The share is &#x27;all&#x27;; expected a number", id="no share"),
        pytest.param({"share_percent": "0"}, "it is above 0 and up to 100", id="no requests"),
        pytest.param(
            {"max_requests": "1.5"}, "The number of requests is 1.5; expected a whole number", id="half a request"
        ),
        pytest.param({"retention": "long"}, "is no duration", id="no duration"),
    ],
)
def test_what_cannot_be_recorded_is_refused_by_its_field(said: dict[str, str], words: str) -> None:
    scenes.service()
    answer = signed_in().post(LIST, {"consent": CONSENT, **said}, headers={"HX-Request": "true"})
    assert answer.status_code == 400
    assert words in answer.content.decode()
    assert not Recording.objects.exists()


def test_the_log_tells_when_requests_came_and_how_they_were_answered_and_not_what_they_hold() -> None:
    scenes.service()
    client = signed_in()
    row, address = begun(client)
    told = [exchange(number, label=424242) for number in range(70)]
    length = payload_files.append(row.pk, told[:69], at=0)
    length = payload_files.append(row.pk, [replace(exchange(69, error="secret 424242"), took_ms=12.4687)], at=length)
    Recording.objects.filter(pk=row.pk).update(requests=70, bytes=length)
    shown = text(client, address)
    log = shown.partition('id="requests"')[2].partition("</section>")[0]
    assert re.findall(r'title="(request-\d+)"', log) == [f"request-{number}" for number in range(69, 19, -1)]
    assert "the last 50 of 70" in log
    newest, _, others = log.partition("request-68")
    assert "internal" in newest
    assert "12.5 ms" in newest
    assert " ms<" not in others, "nobody measured them"
    assert "digits-00001" in log
    assert "424242" not in shown


def test_a_log_that_cannot_be_read_says_why() -> None:
    scenes.service()
    client = signed_in()
    row, address = begun(client)
    Recording.objects.filter(pk=row.pk).update(requests=3, bytes=1000)
    assert "Fairlead cannot list them: the recording&#x27;s file" in text(client, address)


def test_it_is_stopped_and_deleted() -> None:
    scenes.service()
    client = signed_in()
    row, address = begun(client)
    filled(row)
    assert client.post(f"{address}stop")["Location"] == address
    shown = text(client, address)
    assert "stopped it" in shown
    assert "Stop recording?" not in shown
    assert client.post(f"{address}delete")["Location"] == LIST
    assert not Recording.objects.exists()
    assert client.get(address).status_code == 404
    assert set(AuditEntry.objects.values_list("action", flat=True)) >= {"recording.stop", "recording.delete"}


def test_a_replay_is_begun_from_a_recording_with_what_is_asked_of_the_answers() -> None:
    scenes.service()
    scenes.model_version(2)
    client = signed_in()
    row, address = begun(client)
    filled(row)
    assert '<option value="2">version 2</option><option value="1">version 1 (live)</option>' in text(client, address)
    said = {"version": "2", "agreement": "99.5", "comparison": "tolerances: {label: {abs: 2}}\ntopK: 1\n"}
    replay = Replay.objects.get(pk=int(client.post(f"{address}replay", said)["Location"].split("/")[-2]))
    assert (replay.recording_id, replay.model_version.number, replay.total) == (row.pk, 2, 30)
    assert (replay.terms["minAgreementPercent"], replay.terms["topK"]) == (99.5, 1)
    assert replay.terms["tolerances"] == {"label": {"abs": 2.0}}
    for path in (address, LIST, "/services/default/digits/"):
        assert f"/services/default/digits/replays/{replay.pk}/" in text(client, path)


def test_live_is_what_takes_requests_also_where_the_file_names_another() -> None:
    service = scenes.service()
    client = signed_in()
    row, address = begun(client)
    filled(row)
    rollout_abort(rollout_id=scenes.rollout(service).pk, actor="alice", now=timezone.now())
    assert '<option value="2">version 2</option><option value="1">version 1 (live)</option>' in text(client, address)


@pytest.mark.parametrize(
    ("said", "status", "words"),
    [
        pytest.param({"version": "9"}, 404, "9", id="unknown version"),
        pytest.param({"version": ""}, 400, "expected a number such as 2", id="no version"),
        pytest.param({"comparison": "minPairs: 0"}, 400, "minPairs", id="terms"),
        pytest.param({"comparison": "- x"}, 400, "The text is no comparison", id="another kind"),
        pytest.param({"comparison": "a: b: c"}, 400, "Line 1:", id="no YAML"),
        pytest.param({"agreement": "9", "comparison": "minAgreementPercent: 8"}, 400, "leave one", id="said twice"),
    ],
)
def test_what_cannot_be_replayed_is_refused(said: dict[str, str], status: int, words: str) -> None:
    scenes.service()
    client = signed_in()
    row, address = begun(client)
    filled(row)
    answer = client.post(f"{address}replay", {"version": "1", **said}, headers={"HX-Request": "true"})
    assert answer.status_code == status
    assert words in answer.content.decode()
    assert not Replay.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_page_of_a_replay_follows_it_to_its_report(platform: Platform) -> None:
    scene = Scene(platform)
    client = signed_in()
    row = scene.start()
    address = f"/services/default/digits/replays/{row.pk}/"
    assert "It waits for its turn; 2 replays are made at a time." in text(client, address)
    Replay.objects.filter(pk=row.pk).update(claim="0" * 32, done=12)
    going = text(client, address)
    assert 'value="40"' in going
    assert "12 of 30" in going
    Replay.objects.filter(pk=row.pk).update(claim=None, done=0)
    scene.answers(lambda recorded: exchange(int(recorded.at) - 1000, label=11))
    scene.make(row)
    shown = text(client, address)
    for words in ("Answers compared", "0 % of 30 requests", "Failed", "Recorded</th>", "Version 2</th>", "label"):
        assert words in shown
    assert "Deploy version 2" not in shown
    agreeing = scene.start()
    scene.answers(lambda recorded: recorded)
    scene.make(agreeing)
    assert "Deploy version 2" in text(client, f"/services/default/digits/replays/{agreeing.pk}/")
    listed = text(client, LIST)
    assert "30 of 30 answers differ" in listed
    Recording.objects.all().delete()
    assert marked(text(client, address), "recording-gone")


@pytest.mark.django_db(transaction=True)
def test_a_replay_that_cannot_be_made_says_why(platform: Platform) -> None:
    scene = Scene(platform)
    platform.cluster.broken["version 2"] = "version 2 cannot be served: no such operator"
    row = scene.make(scene.start())
    shown = text(signed_in(), f"/services/default/digits/replays/{row.pk}/")
    assert marked(shown, "not-compared")
    assert "no such operator" in shown
    assert "Replay again" in shown


def test_only_admins_record_and_only_deployers_replay(browser: Browser) -> None:
    scenes.service()
    admin = signed_in()
    row, address = begun(admin)
    filled(row)
    viewer = browser("default", Role.VIEWER)
    seen = page(viewer, address)
    for words in ("Stop recording?", "Delete this recording?"):
        assert words not in seen
    assert not marked(seen, "start-replay")
    asked: dict[str, dict[str, Any]] = {"stop": {}, "delete": {}, "replay": {"version": "1"}}
    for verb, said in asked.items():
        assert viewer.post(f"{address}{verb}", said).status_code == 403
    assert viewer.post(LIST, {"consent": CONSENT}).status_code == 403
    deployer = browser("default", Role.DEPLOYER)
    seen = page(deployer, address)
    assert marked(seen, "start-replay")
    assert "Stop recording?" not in seen
    for verb in ("stop", "delete"):
        assert deployer.post(f"{address}{verb}").status_code == 403
    assert deployer.post(f"{address}replay", asked["replay"]).status_code == 302
    admin.post(f"{address}stop")
    assert "Start recording" not in page(deployer, LIST)
    assert deployer.post(LIST, {"consent": CONSENT}).status_code == 403


def test_another_teams_recordings_are_not_there(browser: Browser) -> None:
    scenes.service()
    row, address = begun(signed_in())
    filled(row)
    replay = scenes.replay(row)
    ownership_set(team="red", kind=Owned.NAMESPACE, name="default", actor="test", now=timezone.now())
    other = browser("default", Role.DEPLOYER)
    for path in (LIST, address, f"{address}stream", f"/services/default/digits/replays/{replay.pk}/"):
        assert other.get(path).status_code == 404, path
    assert other.post(f"{address}replay", {"version": "1"}).status_code == 404


def test_a_cluster_that_cannot_record_says_so() -> None:
    scenes.service()
    Cluster.objects.update(kind="kubernetes", document={**LEAST, "name": "local"})
    shown = text(signed_in(), LIST)
    assert "cannot record" in shown
    assert "Start recording" not in shown


def test_the_number_of_queries_does_not_grow(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    scenes.service()
    client = signed_in()
    row, address = begun(client)
    filled(row)
    replay = scenes.replay(row)
    Recording.objects.filter(pk=row.pk).update(ended_at=timezone.now())
    pages = (LIST, address, f"/services/default/digits/replays/{replay.pk}/")
    counts = []
    for path in pages:
        client.get(path)
        with django_assert_num_queries({LIST: 7, address: 9}.get(path, 5)) as few:
            client.get(path)
        counts.append(len(few.captured_queries))
    for _ in range(5):
        scenes.replay(row)
        more, _address = begun(client)
        Recording.objects.filter(pk=more.pk).update(ended_at=timezone.now())
    for path, count in zip(pages, counts, strict=True):
        with django_assert_num_queries(count):
            client.get(path)
