"""A receiver that checks signatures as the documentation tells it to, and the pages of the webhook that tells it."""

import hashlib
import hmac
import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser._support.models import colours_model
from tests.browser._support.uploads import drop
from tests.browser.whole.desk import WAIT_MS, Desk, ask, see
from tests.browser.whole.driven import drives
from tests.e2e._support.platforms import started
from tests.e2e.harness import Platform, until

pytestmark = [pytest.mark.browser, pytest.mark.e2e]


@dataclass
class Receiver:
    """What was posted to it; it takes what is signed with its secret while it is well.

    Attributes:
        came: what it took, in order.
        refused: how many were not genuine.
    """

    url: str = ""
    secret: str = ""
    is_well: bool = True
    came: list[dict[str, Any]] = field(default_factory=list)
    refused: int = 0

    def answer(self, header: str, body: bytes) -> tuple[int, str]:
        """Return the status and words for a message, by the lines of docs/reference/api.md."""
        moment, signature = (part.split("=", 1)[1] for part in header.split(","))
        expected = hmac.new(self.secret.encode(), moment.encode() + b"." + body, hashlib.sha256).hexdigest()
        if not (hmac.compare_digest(signature, expected) and abs(time.time() - int(moment)) < 300):
            self.refused += 1
            return 401, "this is signed by somebody else"
        if not self.is_well:
            return 503, "down for repairs"
        self.came.append(json.loads(body))
        return 202, f"thanks for number {len(self.came)}"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A server on this machine."""
    made = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, words = made.answer(self.headers["Fairlead-Signature"], body)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(words.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """One running platform for the module, which may post to this machine."""
    allowed = {"FAIRLEAD_EGRESS_ALLOWED_NETWORKS": "127.0.0.0/8"}
    with started(tmp_path_factory.mktemp("e2e"), **allowed) as made:
        yield made


@drives(
    "GET webhook-list",
    "POST webhook-list",
    "GET webhook-detail",
    "POST webhook-detail",
    "POST webhook-test",
    "GET delivery",
    "POST webhook-secret",
    "POST webhook-switch",
    "POST delivery-repeat",
    "POST webhook-delete",
)
def test_a_receiver_is_told_what_its_page_says_and_believes_the_secret_alone(
    desk: Desk, receiver: Receiver, tmp_path: Path
) -> None:
    page = desk.page()
    page.get_by_role("link", name="Webhooks").click()
    page.get_by_label("Address").fill(receiver.url)
    page.get_by_label("What it is for").fill("tells the shop")
    page.get_by_label("VersionRejected").check()
    page.get_by_role("button", name="Create webhook").click()
    secret, answer = page.locator("#made-secret"), page.locator("#answer")
    expect(secret).to_contain_text("whsec_")
    receiver.secret = secret.inner_text()
    desk.look(page, "webhook-made")
    page.get_by_role("link", name=receiver.url).click()
    page.get_by_role("button", name="Test").press("Enter")
    expect(answer).to_contain_text("answered 202", timeout=WAIT_MS)  # asked for until it comes
    expect(answer).to_contain_text("thanks for number 1")
    assert receiver.came[0]["event"] == "Test"
    page.get_by_label("VersionRejected").uncheck()
    page.get_by_label("VersionReady").check()
    page.get_by_role("button", name="Save").click()
    see(page, "Saved.")
    hook = page.url

    page.get_by_role("link", name="Models", exact=True).click()
    drop(page, colours_model(tmp_path / "colours.zip"))
    page.get_by_role("button", name="Upload", exact=True).click()
    page.wait_for_url("**/models/colours/versions/1/")
    expect(page.get_by_text("READY", exact=True)).to_be_visible(timeout=WAIT_MS)
    until(lambda: len(receiver.came) > 1, WAIT_MS / 1000, "the message of the version")
    told = receiver.came[1]
    assert (told["event"], told["model"], told["version"]) == ("VersionReady", "colours", 1)
    page.goto(hook)
    page.evaluate("window.stayed = true")
    first = page.locator("#deliveries tbody tr").first
    expect(first).to_contain_text("thanks for number 2", timeout=WAIT_MS)  # by the log's own look
    page.get_by_text("What was posted by delivery").first.click()
    posted = page.locator("details[open] pre.payload")
    assert json.loads(posted.inner_text()) == told
    desk.look(page, "webhook-log")

    receiver.is_well = False
    page.get_by_role("button", name="Test").click()
    expect(answer).to_contain_text("answered 503", timeout=WAIT_MS)
    expect(answer).to_contain_text("down for repairs")
    page.get_by_role("link", name="Failed").click()
    expect(page.locator("#deliveries tbody tr")).to_have_count(1)
    desk.look(page, "webhook-failed")
    receiver.is_well = True
    page.get_by_role("button", name="Post again").click()
    expect(answer).to_contain_text("thanks for number 3", timeout=WAIT_MS)

    page.get_by_role("button", name="Replace the secret").click()
    expect(secret).to_have_text(re.compile("whsec_"))
    page.get_by_role("button", name="Test").click()
    expect(answer).to_contain_text("signed by somebody else", timeout=WAIT_MS)  # the receiver knows the old one yet
    receiver.secret = secret.inner_text()
    page.get_by_role("button", name="Test").click()
    expect(answer).to_contain_text("thanks for number 4", timeout=WAIT_MS)
    assert receiver.refused == 1

    page.get_by_role("button", name="Disable").click()
    see(page, "It receives no more events.")
    page.goto("/models/")
    drop(page, colours_model(tmp_path / "colours-too.zip"))
    page.get_by_role("button", name="Upload", exact=True).click()
    page.wait_for_url("**/models/colours-too/versions/1/")  # the list of models says READY, of the first
    expect(page.get_by_text("READY", exact=True)).to_be_visible(timeout=WAIT_MS)
    page.goto(hook)
    page.get_by_role("button", name="Enable").click()
    see(page, "It receives events again.")
    page.get_by_role("button", name="Test").click()
    expect(answer).to_contain_text("thanks for number 5", timeout=WAIT_MS)
    assert [each["event"] for each in receiver.came].count("VersionReady") == 1
    ask(page, "Delete…", "Delete")
    page.wait_for_url("**/webhooks/")
    see(page, "No webhooks.")
