"""Models, their versions, what is made of those: compared, deployed, tried."""

import os
from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import Page, expect

from deployments.models import InferenceService
from registry.models import Alias, ModelImport, ModelVersion, RegisteredModel
from registry.storage import store
from tests import scenes
from tests.browser.states.of_home import LONGEST, service_stopped
from tests.browser.states.state import Arrange, PageStates, Stage, State

LONGEST_MODEL = "a-model-with-a-name-as-long-as-they-come-" + "y" * 22
DESCRIPTION = (
    "Zählt Ziffern: 数字を認識する. Trained on *nine thousand* images; see [the notes](https://a.example/notes)."
)
LINEAGE = {
    "source_commit": "0123456789abcdef0123456789abcdef01234567",
    "run_url": "https://ci.example/runs/" + "1" * 60,
    "data_reference": "s3://data/digits/2026-01-01/",
    "parameters": {"learning_rate": 0.001, "a_parameter_with_a_long_name_that_wraps": "x" * 80},
}
COMMENT = "Compared it with the champion on the evaluation set of June; see https://a.example/reports/" + "7" * 40
IMPORT_FAILED = "https://models.example/digits.onnx answered 403 Forbidden; let the address be read without a password"
REJECTED = "model.onnx is not an ONNX model: it is not a protobuf message"
PICTURES = {
    "inputs": [
        {"name": "image", "datatype": "FP32", "shape": [-1, 3, 224, 224]},
        {"name": "a_long_name_of_an_input_that_tells_all", "datatype": "BYTES", "shape": [-1, 2], "optional": True},
        {"name": "row", "datatype": "INT64", "shape": [-1, 40]},
    ],
    "outputs": [{"name": "label", "datatype": "INT64", "shape": [-1]}],
}


def measured(version: ModelVersion, slower: float = 1.0) -> None:
    """Let the version have been measured, with what its author says of it."""
    batches = [
        {"batch_size": size, "latency_p50_us": slower * 90.0 * size**0.8, "latency_p99_us": slower * 150.0 * size**0.8}
        for size in (1, 2, 4, 8, 16, 32)
    ]
    profile = {"memory_bytes": 180 << 20, "load_seconds": 1.4, "batches": batches}
    tags = {"team": "vision", "stage": "a value of a tag that somebody wrote at length"}
    fields = {"profile": profile, "lineage": LINEAGE, "description": DESCRIPTION, "tags": tags}
    ModelVersion.objects.filter(pk=version.pk).update(**fields)


def rejected(number: int) -> ModelVersion:
    """Return a version that no runtime can open."""
    row = scenes.model_version(number)
    ModelVersion.objects.filter(pk=row.pk).update(status="REJECTED", reason=REJECTED, signature={}, platform="")
    return row


def _imports(model: str, *statuses: str) -> None:
    now = timezone.now()
    for status in statuses:
        ModelImport.objects.create(
            model=model,
            uri="https://models.example/" + "deep/" * 12 + "digits.onnx?signature=secret",
            status=status,
            reason=IMPORT_FAILED if status == "FAILED" else "",
            bytes_done=40 << 20,
            bytes_total=120 << 20,
            created_at=now,
            created_by="alice",
            finished_at=None if status == "PENDING" else now,
        )


def _models_busy(_: Stage) -> str:
    for name in ("digits", "fraud", LONGEST_MODEL, "churn", "question-similarity"):
        row = scenes.model_version(1, name)
        RegisteredModel.objects.filter(pk=row.model_id).update(
            description=DESCRIPTION, tags={"team": "vision", "purpose": "reads digits from pictures"}
        )
        Alias.objects.create(model=row.model, name="champion", version=row, moved_at=timezone.now())
    return "/models/"


def _models_coming(_: Stage) -> str:
    scenes.model_version(1)
    _imports(LONGEST_MODEL, "PENDING")
    return "/models/"


def _model_coming(status: str) -> Arrange:
    def arrange(_: Stage) -> str:
        _imports("digits", status)
        return "/models/digits/"

    return arrange


def _models_error(_: Stage) -> str:
    rejected(1)
    return "/models/"


def _models_none_found(_: Stage) -> str:
    scenes.model_version(1)
    return "/models/?search=nobody"


def _model_empty(_: Stage) -> str:
    row = scenes.model_version(1)
    row.delete()
    return "/models/digits/"


def _model_busy(_: Stage) -> str:
    scenes.service()
    for number in (2, 3, 4):
        measured(scenes.model_version(number))
    model = RegisteredModel.objects.get()
    RegisteredModel.objects.update(description=DESCRIPTION, tags={"team": "vision"}, latest_number=4)
    for name, number in (("champion", 1), ("challenger-of-the-champion", 4)):
        version = ModelVersion.objects.get(number=number)
        Alias.objects.create(model=model, name=name, version=version, moved_at=timezone.now())
    _imports("digits", "PENDING", "IMPORTED")
    _decided(4, "approved")
    _decided(3, "declined")
    return "/models/digits/"


def _versions_none_found(stage: Stage) -> str:
    return f"{_model_busy(stage)}?status=REJECTED&alias=champion"


def _decided(number: int, approval: str) -> None:
    """Let the model ask for approvals, have protected aliases, and somebody have decided of a version."""
    aliases = ["challenger-of-the-champion", "champion", "x" * 64]
    RegisteredModel.objects.update(protected_aliases=aliases, requires_approval=True)
    said = {"approval_by": "bob", "approval_at": timezone.now(), "approval_comment": COMMENT}
    ModelVersion.objects.filter(number=number).update(approval=approval, **said)


def _model_error(_: Stage) -> str:
    scenes.model_version(1)
    rejected(2)
    _imports("digits", "FAILED")
    return "/models/digits/"


def _version_checked(_: Stage) -> str:
    row = scenes.model_version(1)
    ModelVersion.objects.filter(pk=row.pk).update(status="PENDING", signature={}, platform="")
    return "/models/digits/versions/1/"


def _version_busy(_: Stage) -> str:
    for name in ("digits", LONGEST, "ranker"):
        scenes.service(name)
    scenes.model_version(2)
    measured(ModelVersion.objects.get(number=1))
    _decided(1, "approved")
    version = ModelVersion.objects.get(number=1)
    Alias.objects.create(model=version.model, name="champion", version=version, moved_at=timezone.now())
    return "/models/digits/versions/1/"


def _version_of_an_image(_: Stage) -> str:
    scenes.turn_into_images(scenes.service())
    return "/models/digits/versions/1/"


def _version_unreviewed(_: Stage) -> str:
    scenes.model_version(1)
    RegisteredModel.objects.update(requires_approval=True)
    return "/models/digits/versions/1/"


def _is_about_to_approve(page: Page) -> None:
    page.get_by_role("button", name="Approve…").click()
    expect(page.get_by_label("What you looked at")).to_be_focused()


def _version_declined(_: Stage) -> str:
    scenes.model_version(1)
    _decided(1, "declined")
    return "/models/digits/versions/1/"


def _version_rejected(_: Stage) -> str:
    rejected(1)
    return "/models/digits/versions/1/"


def _compared_alike(_: Stage) -> str:
    scenes.model_version(1)
    scenes.model_version(2)
    return "/models/digits/versions/2/compare?with=1"


def _compared_different(_: Stage) -> str:
    measured(scenes.model_version(1))
    measured(scenes.model_version(2), slower=1.4)
    ModelVersion.objects.filter(number=2).update(signature=PICTURES, size_bytes=5 << 20)
    return "/models/digits/versions/2/compare?with=1"


def _compared_with_nothing(_: Stage) -> str:
    scenes.model_version(1)
    return "/models/digits/versions/1/compare?with=newest"


def _nothing_to_compare(_: Stage) -> str:
    scenes.model_version(1)
    return "/models/digits/compare"


def _choices(asked: str) -> Arrange:
    def arrange(_: Stage) -> str:
        for number in range(1, 5):
            scenes.model_version(number)
        rejected(5)
        return f"/models/digits/compare{asked}"

    return arrange


def _deploy_empty(_: Stage) -> str:
    scenes.model_version(1)
    return "/deploy/digits/1/"


def _deploy_busy(_: Stage) -> str:
    for name in ("digits", LONGEST, "ranker"):
        scenes.traffic(scenes.service(name), *[100.0] * 20)
    scenes.model_version(2)
    return "/deploy/digits/2/?service=default/digits&policy=careful"


def _deploy_refused(_: Stage) -> str:
    scenes.service()
    rejected(2)
    return "/deploy/digits/2/?service=default/digits&policy=careful"


def _deploy_unapproved(_: Stage) -> str:
    scenes.service()
    scenes.model_version(2)
    RegisteredModel.objects.update(requires_approval=True)
    return "/deploy/digits/2/?service=default/digits&policy=careful"


def _answers_with_errors(page: Page) -> None:
    page.get_by_label("Name", exact=True).fill("Not A Name")
    page.get_by_role("button", name="Create service").click()
    expect(page.locator("#notices")).to_contain_text("Not A Name")


def _try_nowhere(_: Stage) -> str:
    scenes.model_version(1)
    return "/models/digits/versions/1/try/"


def _try_busy(_: Stage) -> str:
    scenes.service()
    scenes.service(LONGEST)
    ModelVersion.objects.update(signature=PICTURES)
    return "/models/digits/versions/1/try/"


def _try_silent(stage: Stage) -> str:
    stage.settings.TRY_TIMEOUT_S = 1
    scenes.service()
    InferenceService.objects.update(live_at=timezone.now() - timedelta(minutes=5))
    return "/models/digits/versions/1/try/"


def _try_stopped(_: Stage) -> str:
    service_stopped()
    return "/models/digits/versions/1/try/?service=default/digits"


def _sends(page: Page) -> None:
    page.get_by_label("image as JSON").fill("[1, 2")
    page.get_by_role("button", name="Send it").click()
    expect(page.get_by_text("that is not JSON")).to_be_visible()


def _storage_empty(stage: Stage) -> str:
    stage.settings.ARTIFACTS_FOLDER = stage.folder / "artifacts"
    return "/storage/"


def _storage_busy(stage: Stage) -> str:
    scenes.service()
    for name, size_mib in (("fraud", 900), (LONGEST_MODEL, 420), ("question-similarity", 90)):
        for number in (1, 2):
            row = scenes.model_version(number, name)
            ModelVersion.objects.filter(pk=row.pk).update(size_bytes=(size_mib << 20) // number)
    rejected(7)
    address = _storage_empty(stage)
    with store().begin("model.onnx") as writer:
        writer.write(b"of no version any more")
        left = writer.commit()
    os.utime(store().path_of(left.digest), (0, 0))
    with store().begin("model.onnx") as writer:
        writer.write(b"just stored")
        writer.commit()
    return address


PAGES = {
    "registry:storage": PageStates(
        title="Storage",
        states={
            "empty": State(_storage_empty, "No versions yet"),
            "busy": State(_storage_busy, LONGEST_MODEL),
        },
        without={"error": "it asks nobody but the database and a folder"},
    ),
    "registry:model-list": PageStates(
        title="Models",
        states={
            "empty": State(lambda _: "/models/", "Drop one above"),
            "empty-none-found": State(_models_none_found, "No models match"),
            "busy": State(_models_busy, LONGEST_MODEL),
            "busy-coming": State(_models_coming, "Imports in progress"),
            "error": State(_models_error, "REJECTED"),
        },
    ),
    "registry:model-detail": PageStates(
        title="digits",
        states={
            "empty": State(_model_empty, "No versions yet"),
            "empty-none-found": State(_versions_none_found, "No version matches"),
            "busy": State(_model_busy, "40.0 MiB of 120 MiB"),
            "busy-coming": State(_model_coming("PENDING"), "is importing the first"),
            "error": State(_model_error, "answered 403 Forbidden"),
            "error-none-came": State(_model_coming("FAILED"), "no import succeeded"),
        },
    ),
    "registry:version-detail": PageStates(
        title="digits version 1",
        states={
            "empty": State(_version_checked, "waits for a worker"),
            "busy": State(_version_busy, "99th percentile"),
            "busy-image": State(_version_of_an_image, "it represents an image"),
            "busy-unreviewed": State(_version_unreviewed, "cannot use it before"),
            "busy-asks": State(_version_unreviewed, "Approve this version?", act=_is_about_to_approve),
            "error": State(_version_rejected, REJECTED),
            "error-declined": State(_version_declined, "Declined by bob"),
        },
    ),
    "registry:model-compare": PageStates(
        title="Compare versions of digits",
        states={
            "empty": State(_nothing_to_compare, "Version 1 is the only one"),
            "busy": State(_choices("?version=4"), "Compared with"),
            "error": State(_choices("?version=4&with=4"), "was chosen twice"),
        },
    ),
    "registry:version-compare": PageStates(
        title="digits version 2 beside 1",
        states={
            "empty": State(_compared_alike, "No measurements"),
            "busy": State(_compared_different, "breaks clients"),
            "error": State(
                _compared_with_nothing,
                "expected the number of a version",
                status=400,
                title="That cannot be done as asked",
                is_refused=True,
            ),
        },
    ),
    "deployments:deploy": PageStates(
        title="Deploy digits version",
        states={
            "empty": State(_deploy_empty, "No service that you may change serves this model"),
            "busy": State(_deploy_busy, "Detectable effects"),
            "error": State(_deploy_refused, "not possible"),
            "error-unapproved": State(_deploy_unapproved, "is not approved, which its model asks for"),
            "error-form": State(_deploy_empty, "Not A Name", act=_answers_with_errors, is_refused=True),
        },
    ),
    "deployments:try": PageStates(
        title="Try digits version 1",
        states={
            "empty": State(_try_nowhere, "is live in no service"),
            "busy": State(_try_busy, "a_long_name_of_an_input_that_tells_all"),
            "error": State(_try_silent, "that is not JSON", act=_sends),
            "error-stopped": State(
                _try_stopped, "is stopped, so it", status=409, title="Not possible now", is_refused=True
            ),
        },
    ),
}
