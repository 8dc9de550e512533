"""The pages of services, on the real database and the real services."""

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from clusters.models import Cluster
from control_plane.security import POLICY
from deployments.domain.phases import Phase
from deployments.models import AnalysisRun, InferenceService, Revision, Rollout
from deployments.services import policy_apply, rollout_start, service_stop
from tests import scenes
from tests._support.page import marked
from tests.deployments._support.pages import DETAIL, signed_in, text
from tests.deployments._support.platform import Platform

pytestmark = pytest.mark.django_db


def test_an_empty_list_says_what_to_type() -> None:
    assert "fairlead services apply -f service.yaml" in text(signed_in(), "/services/")


def test_the_list_shows_phase_reason_model_rollout_and_replicas() -> None:
    scenes.rollout(scenes.service(), step_index=1)
    scenes.service("ranker")

    page = text(signed_in(), "/services/")

    for words in ("digits", "Progressing", "Step 2 of 3, 25 %", "2 of 2", "ranker", "Ready"):
        assert words in page


def test_the_detail_shows_the_rollout_and_why_it_waits() -> None:
    scenes.rollout(scenes.service(), step_index=1)
    Rollout.objects.update(policy_name="careful")

    page = text(signed_in(), DETAIL)

    for words in (
        "The canary has answered 200 requests at 25 %",
        "Analysis running",
        "by policy <strong>careful",
        "1 of 200 canary requests failed",
        "0.5 %",
        "digits-00002",
        "curl http://127.0.0.1:8090/serving/default/digits/v2/models/digits/infer",
        "was created by test",
    ):
        assert words in page
    assert 'aria-current="step"' in page


def test_the_detail_says_what_a_new_revision_would_get() -> None:
    scenes.service()
    Revision.objects.update(template_changes="image a -> b")
    (said, *_) = marked(text(signed_in(), DETAIL), "template-changes")
    assert "image a -> b" in said


def test_the_page_says_who_may_call_the_service() -> None:
    scenes.service()
    client, seen = signed_in(), set()
    for access in (None, "authenticated", {"teams": ["fraud", "risk"], "keys": ["ci"]}):
        InferenceService.objects.update(access=access)
        shown = text(client, DETAIL)
        (said,) = marked(shown, "who-may-call")
        assert ("$FAIRLEAD_KEY" in shown) == (access is not None)
        seen.add(said)
    assert len(seen) == 3
    assert "fraud, risk, keys ci" in said


def test_the_page_shows_the_address_that_a_service_is_leaving() -> None:
    scenes.service()
    client = signed_in()
    assert marked(text(client, DETAIL), "leaving") == []
    further = {"url": "https://a.test", "namespaces": ["default"]}
    document = {"gateway": {"leaving": ["default"]}, "gateways": [further]}
    Cluster.objects.update(document=document, gateway_url="https://models.test")
    page = text(client, DETAIL)
    (said,) = marked(page, "leaving")
    assert "https://models.test/serving/default/digits/v2/models/digits" in said
    assert "https://a.test/serving/default/digits/v2/models/digits/infer" in page


def test_the_page_says_which_web_pages_may_call_the_service() -> None:
    scenes.service()
    client = signed_in()
    assert marked(text(client, DETAIL), "pages-that-may-call") == []
    said = {}
    for origin in ("https://app.example.com", "*"):
        InferenceService.objects.update(cors={"origins": [origin], "max_age_s": 600})
        (said[origin],) = marked(text(client, DETAIL), "pages-that-may-call")
    assert "https://app.example.com" in said["https://app.example.com"]
    assert "*" not in said["*"]


def test_the_page_shows_the_gateways_authority_where_its_certificate_is_self_made(settings: Settings) -> None:
    scenes.service()
    settings.GATEWAY_URL, settings.GATEWAY_CA = "https://127.0.0.1:8090", "/home/tls/ca.crt"
    line = "curl --cacert /home/tls/ca.crt https://127.0.0.1:8090/serving/default/digits/v2/models/digits"
    assert line in text(signed_in(), DETAIL)


def test_the_page_shows_the_limits_of_requests() -> None:
    scenes.service()
    client = signed_in()
    assert marked(text(client, DETAIL), "request-limits") == []
    InferenceService.objects.update(
        limits={
            "requestsPerSecond": 731,
            "rowsPerMinute": 4321,
            "perCaller": {"requestsPerSecond": 17, "rowsPerMinute": 987, "concurrentRequests": 23},
            "requestBytes": 65536,
        }
    )
    (shown,) = marked(text(client, DETAIL), "request-limits")
    assert "731" in shown
    assert "17" in shown
    assert "4321" in shown
    assert "987" in shown
    assert "64.0 KiB" in shown
    assert "23 unanswered" in shown
    InferenceService.objects.update(limits={"perCaller": {"concurrentRequests": 29}})
    (shown,) = marked(text(client, DETAIL), "request-limits")
    assert " ".join(shown.split()) == "Limits: 29 unanswered for each caller."


def test_the_page_shows_the_objectives_of_the_service() -> None:
    service = scenes.service()
    client = signed_in()
    assert marked(text(client, DETAIL), "objectives") == []
    service.document["spec"]["objectives"] = {"availability": 99.95, "latency": {"percent": 99, "withinMs": 7.5}}
    service.save()
    (shown,) = marked(text(client, DETAIL), "objectives")
    assert {"99.95", "99", "7.5"} <= set(shown.split())
    assert shown.split().count("requests") == 1 + 2, "none was counted yet"
    service.document["spec"]["objectives"] = {"availability": 99}
    service.save()
    (shown,) = marked(text(client, DETAIL), "objectives")
    assert "99" in shown.split()
    assert "ms" not in shown


def test_the_page_shows_what_is_left_of_the_error_budgets() -> None:
    service = scenes.service()
    client = signed_in()
    service.document["spec"]["objectives"] = {"availability": 99, "latency": {"percent": 99, "withinMs": 3}}
    service.save()
    scenes.traffic(service, *[20.0] * 40, errors=0.0025)
    (shown,) = marked(text(client, DETAIL), "objectives")
    words = " ".join(shown.replace("\N{NO-BREAK SPACE}", " ").split())
    assert "99.6666 %" in words, "1 of 300 in each sample, rounded down"
    assert "40 of 12,000" in words
    assert "66.67 %" in words
    assert "98 %" in words
    assert "240 of 12,000" in words
    assert "2 times" in words
    (period,) = marked(text(client, DETAIL), "objectives-period")
    assert "30 days" in " ".join(period.split())
    assert "3h" in period


def test_a_versions_page_leads_to_the_services_that_use_it() -> None:
    used = scenes.service()
    version = used.model_version

    page = text(signed_in(), f"/models/{version.model.name}/versions/{version.number}/")

    assert f'<a href="{DETAIL}">service default/digits (revision digits-00001' in page


def test_nothing_runs_in_an_analysis_that_has_ended() -> None:
    scenes.rollout(scenes.service(), step_index=1)
    assert "Running</span>" in text(signed_in(), DETAIL)
    AnalysisRun.objects.update(finished_at=timezone.now())
    page = text(signed_in(), DETAIL)
    assert "Undecided</span>" in page
    assert "Running</span>" not in page


def test_a_service_without_a_rollout_says_how_to_begin_one() -> None:
    scenes.service()

    assert "fairlead rollouts start default/digits --version 2" in text(signed_in(), DETAIL)


@pytest.mark.parametrize(
    ("scope", "phase", "verbs"),
    [
        pytest.param(Scope.WRITE, Phase.PROGRESSING, {"abort"}, id="a writer can abort"),
        pytest.param(Scope.WRITE, Phase.PAUSED, {"promote", "abort"}, id="a writer can leave a pause"),
        pytest.param(Scope.READ, Phase.PAUSED, set(), id="a reader can do nothing"),
    ],
)
def test_buttons_are_there_for_who_may_press_them(scope: Scope, phase: Phase, verbs: set[str]) -> None:
    scenes.rollout(scenes.service(), step_index=1, phase=phase)

    page = text(signed_in(scope), DETAIL)

    assert {verb for verb in ("promote", "abort", "retry") if f'popovertarget="confirm-{verb}"' in page} == verbs


def test_a_button_acts_and_leads_back_to_the_page() -> None:
    rollout = scenes.rollout(scenes.service(), step_index=1, phase=Phase.PAUSED)
    client = signed_in(Scope.WRITE)

    response = client.post(f"/rollouts/{rollout.pk}/promote", follow=True)

    assert response.redirect_chain == [(DETAIL, 302)]
    assert "Promoted; the rollout goes on." in response.content.decode()
    assert Rollout.objects.get().phase == Phase.PROGRESSING


def test_htmx_gets_the_rollout_as_it_is_now() -> None:
    rollout = scenes.rollout(scenes.service())
    client = signed_in(Scope.WRITE)

    response = client.post(f"/rollouts/{rollout.pk}/abort", headers={"HX-Request": "true"})

    page = response.content.decode()
    assert page.lstrip().startswith('<section class="card" id="rollout"')
    assert "Aborted" in page
    assert 'popovertarget="confirm-retry"' in page


@pytest.mark.parametrize(
    ("path", "scope", "status", "sentence"),
    [
        pytest.param(
            "/rollouts/{id}/promote", Scope.READ, 403, "needs a token with scope write", id="without the scope"
        ),
        pytest.param("/rollouts/{id}/promote", Scope.WRITE, 409, "", id="in another phase"),
        pytest.param("/rollouts/{id}/explode", Scope.WRITE, 404, "no action", id="an unknown verb"),
        pytest.param("/rollouts/999/abort", Scope.WRITE, 404, "no rollout 999", id="an unknown rollout"),
    ],
)
def test_what_cannot_be_done_is_told_about(path: str, scope: Scope, status: int, sentence: str) -> None:
    rollout = scenes.rollout(scenes.service())
    client = signed_in(scope)

    response = client.post(path.format(id=rollout.pk))

    assert response.status_code == status
    assert sentence in response.content.decode()
    assert Rollout.objects.get().phase == Phase.PROGRESSING


@pytest.mark.parametrize(
    ("scope", "stopped", "verbs"),
    [
        pytest.param(Scope.WRITE, False, {"restart", "stop", "delete"}, id="a writer, of one that runs"),
        pytest.param(Scope.WRITE, True, {"resume", "delete"}, id="a writer, of one that is stopped"),
        pytest.param(Scope.READ, False, set(), id="a reader can do nothing"),
    ],
)
def test_a_service_is_managed_by_who_may(scope: Scope, stopped: bool, verbs: set[str]) -> None:
    scenes.service()
    InferenceService.objects.update(stopped=stopped)

    page = text(signed_in(scope), DETAIL)

    shown = {verb for verb in ("restart", "stop", "resume", "delete") if f'popovertarget="confirm-{verb}"' in page}
    assert shown == verbs


def test_a_service_is_restarted_stopped_and_resumed_on_its_page() -> None:
    service = scenes.service()
    client = signed_in(Scope.WRITE)

    def after(verb: str) -> str:
        response = client.post(f"{DETAIL}manage/{verb}", follow=True)
        assert response.redirect_chain == [(DETAIL, 302)]
        service.refresh_from_db()
        return response.content.decode()

    assert "The replicas of default/digits are restarted" in after("restart")
    assert service.restart_number == 1
    stopped = after("stop")
    assert "Resume default/digits?" in stopped
    assert marked(stopped, "none-to-run")
    assert "<dt>Model</dt>" in stopped
    assert "Try it" not in stopped
    assert marked(stopped, "stopped-before-rollout")
    assert "fairlead rollouts start" not in stopped
    assert "0 of " not in text(client, "/services/")
    assert (service.stopped, service.phase) == (True, "Stopped")
    assert "Stop default/digits?" in after("resume")
    assert not service.stopped
    actions = AuditEntry.objects.filter(target="services/default/digits").values_list("action", flat=True)
    assert {"service.restart", "service.stop", "service.resume"} <= set(actions)


def test_the_list_gives_no_figures_of_now_for_a_stopped_service() -> None:
    scenes.traffic(scenes.service(), 30.0, 32.0, errors=0.1)
    client = signed_in()
    figures = ("5 ms", "10 %", "32/s")
    running = text(client, "/services/")
    assert all(figure in running for figure in figures)
    service_stop(namespace="default", name="digits", actor="test", now=timezone.now())

    page = text(client, "/services/")

    assert not [figure for figure in figures if figure in page]
    assert page.count('<span class="faint">\N{EN DASH}</span>') == 2
    assert "Requests of the last half hour: none now, between " in page
    assert '<span class="now"><span class="faint">none</span>' in page
    assert "Live model" not in page


def test_a_service_that_is_deleted_is_drained_and_its_page_manages_it_no_more() -> None:
    scenes.service()
    client = signed_in(Scope.WRITE)

    response = client.post(f"{DETAIL}manage/delete", headers={"HX-Request": "true"})

    assert (response.status_code, response["HX-Redirect"]) == (204, "/services/")
    assert "default/digits is being drained" in text(client, "/services/")
    assert InferenceService.objects.get().phase == "Deleting"
    assert "Delete default/digits?" not in text(client, DETAIL)


@pytest.mark.parametrize(
    ("verb", "scope", "status", "sentence"),
    [
        pytest.param("delete", Scope.READ, 403, "needs a token with scope write", id="without the scope"),
        pytest.param("explode", Scope.WRITE, 404, "no action", id="an unknown verb"),
        pytest.param("restart", Scope.WRITE, 409, "is stopped, so there are no replicas", id="of one that is stopped"),
    ],
)
def test_a_service_stays_where_an_action_is_refused(verb: str, scope: Scope, status: int, sentence: str) -> None:
    scenes.service()
    InferenceService.objects.update(stopped=True)

    response = signed_in(scope).post(f"{DETAIL}manage/{verb}")

    assert response.status_code == status
    assert sentence in response.content.decode()
    assert InferenceService.objects.get().deleting_at is None


def test_an_unknown_service_is_a_page_of_its_own() -> None:
    response = signed_in().get("/services/default/nothing/")

    assert response.status_code == 404
    assert "default/nothing" in response.content.decode()


def test_an_unknown_address_is_one_too() -> None:
    response = signed_in().get("/nowhere/")

    assert response.status_code == 404
    page = response.content.decode()
    assert "No page has this address." in page
    assert 'aria-label="Main"' in page, "no dead end for who is signed in"
    assert 'aria-label="Main"' not in Client().get("/nowhere/").content.decode()


def test_no_page_needs_more_than_its_own_files() -> None:
    scenes.rollout(scenes.service())
    client = signed_in()

    for path in ("/signin/", "/", "/services/", DETAIL, "/nowhere/"):
        response = client.get(path)
        assert response["Content-Security-Policy"] == POLICY
        page = response.content.decode()
        assert " style=" not in page
        assert "<style" not in page
        assert "onclick" not in page
        assert all(' src="/static/' in tag for tag in page.split("<script")[1:])


def test_the_number_of_queries_does_not_grow_with_what_is_shown(
    django_assert_num_queries: DjangoAssertNumQueries, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    client = signed_in()
    rollout = scenes.rollout(scenes.service())
    with django_assert_max_num_queries(21) as listed:
        client.get("/services/")
    with django_assert_max_num_queries(18) as shown:
        client.get(DETAIL)

    for name in ("ranker", "scorer"):
        scenes.rollout(scenes.service(name))
    for step in (1, 2):
        scenes.move(rollout, step_index=step)

    with django_assert_num_queries(len(listed)):
        client.get("/services/")
    with django_assert_num_queries(len(shown)):
        client.get(DETAIL)


def test_a_revision_that_was_stable_before_can_be_gone_back_to() -> None:
    scenes.promoted(scenes.service())
    client = signed_in(Scope.WRITE)
    assert 'id="confirm-rollback-digits-00001"' in text(client, DETAIL)
    assert "confirm-rollback" not in text(signed_in(Scope.READ), DETAIL)

    response = client.post(f"{DETAIL}rollback", {"revision": "digits-00001"}, follow=True)

    assert response.redirect_chain == [(DETAIL, 302)]
    assert "Going back to digits-00001." in response.content.decode()
    assert Rollout.objects.latest("id").to_revision.name == "digits-00001"
    assert signed_in(Scope.READ).post(f"{DETAIL}rollback", {"revision": "digits-00002"}).status_code == 403
    htmx = client.post(f"{DETAIL}rollback", {"revision": "digits-00009"}, headers={"HX-Request": "true"})
    assert htmx.status_code == 404


def test_a_shadow_is_told_in_copies_and_not_in_traffic(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    analysis = {"minRequests": 1000}
    platform.policy(name="shadow", strategy="shadow", steps=[{"weight": 20, "hold": "1h", "analysis": analysis}])
    platform.start(policy="shadow")
    platform.until(AnalysisRun.objects.exists)
    platform.traffic()
    platform.turn()

    page = text(signed_in(), DETAIL)

    for words in (
        "Mirrors 20 % of the requests; clients never see its answers.",
        "Copied to shadow",
        "80 copies of 400 requests",
        '<th scope="col" class="number">Shadow</th>',
        "0 of 80 requests to the shadow failed",
        "copies of 20 %",
        "Nothing is copied to version 2 any more; version 1 (digits-00001) goes on answering all clients.",
    ):
        assert words in page, words
    assert marked(page, "answers-from-stable")
    assert marked(page, "then-waits")
    assert "the canary" not in page.lower()
    assert "Step 1 of 1, copies of 20 %" in text(signed_in(), "/services/")


def test_a_shadow_that_waits_can_be_promoted_knowingly(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.policy(name="shadow", strategy="shadow", steps=[{"weight": 20}])
    platform.start(policy="shadow")
    platform.until(lambda: platform.rollout().phase == "Paused")

    page = text(signed_in(), DETAIL)

    assert "Send all of the requests to version 2?" in page
    assert "So far clients have had no answer of it; from then on they have no other." in page


def test_a_blue_green_rollout_shows_its_preview_address() -> None:
    live = scenes.service()
    policy = {"name": "switch", "strategy": "blueGreen", "steps": [{"pause": True, "analysis": {}}]}
    policy_apply(document=policy, name=None, actor="test", now=timezone.now())
    scenes.model_version(2)
    rollout = rollout_start(
        namespace="default", name="digits", version="2", policy="switch", actor="test", now=timezone.now()
    )
    Rollout.objects.filter(pk=rollout.pk).update(phase=Phase.PAUSED)
    page = text(signed_in(Scope.WRITE), f"/services/{live.namespace}/{live.name}/")
    for words in (
        "http://127.0.0.1:8090/serving/default/digits-preview/v2/models/digits",
        "fairlead-service: default/digits-preview",
        "<strong>Preview</strong>",
        "Send all of the requests to version 2?",
        "All requests move in one switch; digits-00001 is kept warm for the way back.",
        "The preview address is closed",
    ):
        assert words in page


def test_the_list_shows_what_clients_get() -> None:
    scenes.traffic(scenes.service(), *[12.0] * 10, errors=0.05)
    page = text(signed_in(), "/services/")
    for words in ("12/s", "5 ms", "5 %", '<svg class="spark"', "12 per second now, between 12 and 12"):
        assert words in page


def test_the_slice_is_that_of_what_is_live() -> None:
    service = scenes.service()
    placement = {"accelerator": "nvidia.com/mig-1g.10gb", "products": [], "why": "it is the least that holds it"}
    Revision.objects.filter(service=service).update(accelerator="auto", placement=placement)
    assert '<span class="tag">mig-1g.10gb</span>' in text(signed_in(), "/services/")


def test_the_list_is_narrowed_by_words_and_phase() -> None:
    scenes.service("ranker")
    sick = scenes.service("sick")
    InferenceService.objects.filter(pk=sick.pk).update(phase="Degraded", reason="no replica is ready")
    client = signed_in()

    found = text(client, "/services/?q=RANK")
    assert "/services/default/ranker/" in found
    assert "/services/default/sick/" not in found
    found = text(client, "/services/?phase=Degraded&q=default")
    assert "No replica is ready" in found
    assert "/services/default/ranker/" not in found
    assert 'href="?q=default" data-state="All"' in found.replace('aria-current="page" ', "")
    assert "No service that you may see has “nothing”" in text(client, "/services/?q=nothing")
    assert client.get("/services/?phase=Great").status_code == 400


def test_a_page_of_the_list_says_which_one_it_is() -> None:
    scenes.copies(scenes.service(), 120)
    client = signed_in()

    first, last = text(client, "/services/"), text(client, "/services/?page=3")

    assert "1 to 50 of 121" in first
    assert 'href="?page=2"' in first
    assert "101 to 121 of 121" in last
    assert 'rel="next"' not in last
    beyond = text(client, "/services/?page=9")
    assert marked(beyond, "no-such-page")


def test_ten_thousand_services_take_no_more_queries(
    django_assert_num_queries: DjangoAssertNumQueries, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    client, one = signed_in(), scenes.service()
    scenes.copies(one, 60)
    with django_assert_max_num_queries(20) as listed:
        client.get("/services/?q=copy")
    with django_assert_max_num_queries(32) as at_home:
        client.get("/")
    InferenceService.objects.exclude(pk=one.pk).delete()
    scenes.copies(one, 10_000)
    with django_assert_num_queries(len(listed)):
        client.get("/services/?q=copy")
    with django_assert_num_queries(len(at_home)):
        client.get("/")


def test_a_service_of_images_names_them_and_offers_nothing_that_needs_a_model() -> None:
    service = scenes.service()
    scenes.rollout(service)
    scenes.turn_into_images(service)
    page = text(signed_in(), "/services/default/digits/")
    assert [each.split(" ")[0] for each in marked(page, "image")] == ["digits-00001", "digits-00002"]
    assert 'id="open-try"' not in page
    assert 'id="open-recordings"' not in page
