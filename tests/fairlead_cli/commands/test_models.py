"""`fairlead models`, `versions` and `alias`."""

import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Fairlead = Callable[..., tuple[int, str, str]]


def version(number: int = 1, status: str = "READY", **changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "model": "digits",
        "number": number,
        "digest": "sha256:aa",
        "status": status,
        "reason": "",
        "platform": "onnxruntime_onnx",
        "signature": {"inputs": [{"name": "pixels", "datatype": "FP32", "shape": [-1, 64]}], "outputs": []},
        "profile": {"memory_bytes": 1536},
        "size_bytes": 2048,
        "source_name": "model.onnx",
        "aliases": [],
        "created_at": "2026-01-01T00:00:00Z",
        "created_by": "ann",
    }
    return made | changes


@pytest.fixture
def file(at_home: Path) -> Path:
    made = at_home / "model.onnx"
    made.write_bytes(b"some model")
    return made


PUSH = "POST /models/digits/versions?filename=model.onnx"


def test_push_shows_the_version(fairlead: Fairlead, api: Any, file: Path) -> None:
    api.on(PUSH, version(status="PENDING", signature=None, profile=None), status=201)

    code, said, _ = fairlead("models", "push", str(file), "--name", "digits")

    assert code == 0
    assert ["status", "PENDING"] in [line.split() for line in said.splitlines()]
    assert api.seen[0].body == b"some model"


def test_push_waits_for_the_check_and_then_sets_the_alias(fairlead: Fairlead, api: Any, file: Path) -> None:
    api.on(PUSH, version(status="PENDING"), status=201)
    api.on("GET /models/digits/versions/1", version(status="PENDING"), version(), version(aliases=["champion"]))
    api.on("PUT /models/digits/aliases/champion", {"version": 1})

    code, said, _ = fairlead("models", "push", str(file), "--name", "digits", "--alias", "champion", "-o", "json")

    assert (code, json.loads(said)["aliases"]) == (0, ["champion"])
    assert [seen.method for seen in api.seen] == ["POST", "GET", "GET", "PUT", "GET"]
    assert api.seen[3].document == {"version": 1}


def test_push_with_a_wrong_alias_sends_nothing(fairlead: Fairlead, api: Any, file: Path) -> None:
    code, _, complained = fairlead("models", "push", str(file), "--name", "digits", "--alias", "2nd best")

    assert (code, "'2nd best' is no alias; expected 1 to 64" in complained, api.seen) == (2, True, [])


def test_push_of_a_rejected_version_ends_with_3(fairlead: Fairlead, api: Any, file: Path) -> None:
    api.on(PUSH, version(status="PENDING"), status=201)
    api.on("GET /models/digits/versions/1", version(status="REJECTED", reason="it is no ONNX file"))

    code, said, complained = fairlead("models", "push", str(file), "--name", "digits", "--wait")

    assert (code, said) == (3, "")
    assert complained == "digits version 1 was rejected: it is no ONNX file\n"


def test_push_that_waits_too_long_ends_with_4(fairlead: Fairlead, api: Any, file: Path) -> None:
    api.on(PUSH, version(status="PENDING"), status=201)
    api.on("GET /models/digits/versions/1", version(status="PENDING"))

    code, _, complained = fairlead("models", "push", str(file), "--name", "digits", "--wait", "--timeout", "0")

    assert code == 4
    assert complained.startswith("the check of digits version 1 was not there after 0 s")


def test_push_of_no_file_is_refused_here(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    code, _, complained = fairlead("models", "push", "nothing.onnx", "--name", "digits")

    assert (code, complained) == (
        1,
        "nothing.onnx is no file; give the model's file, such as model.onnx, or its folder\n",
    )
    assert api.seen == []


def test_models_are_listed_as_far_as_they_are_like_what_is_asked(fairlead: Fairlead, api: Any) -> None:
    api.on(
        "GET /models?search=digit&tag=team%3Dvision&alias=champion&team=red&platform=openvino",
        {"next": None, "results": [{"name": "digits", "latest_version": 2, "created_at": "2026-01-01"}]},
    )

    narrow = ("--search", "digit", "--tag", "team=vision", "--alias", "champion", "--team", "red")
    code, said, _ = fairlead("models", "list", *narrow, "--platform", "openvino")

    assert code == 0
    assert said.splitlines()[-1].split()[:2] == ["digits", "2"]


def test_show_lists_the_versions(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /models/digits", {"name": "digits", "description": "", "created_at": "2026-01-01"})
    api.on("GET /models/digits/versions", {"next": None, "results": [version(2, aliases=["champion"]), version(1)]})

    code, said, _ = fairlead("models", "show", "digits")

    assert code == 0
    assert [line.split()[:3] for line in said.splitlines()[-2:]] == [["2", "READY", "champion"], ["1", "READY", "-"]]


def test_a_version_shows_its_tensors(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /models/digits/versions/1", version())

    _, said, _ = fairlead("versions", "show", "digits", "1")

    facts = dict(line.split(maxsplit=1) for line in said.splitlines())
    assert (facts["inputs"], facts["outputs"], facts["size"], facts["memory"]) == (
        "pixels FP32[-1,64]",
        "-",
        "2.0 KiB",
        "1.5 KiB",
    )


def test_an_alias_moves(fairlead: Fairlead, api: Any) -> None:
    api.on("PUT /models/digits/aliases/champion", {"version": 2})

    assert fairlead("alias", "set", "digits", "champion", "2") == (0, "digits@champion is version 2 now\n", "")


def test_delete_says_what_it_did(fairlead: Fairlead, api: Any) -> None:
    api.on("DELETE /models/digits", {}, status=204)

    assert fairlead("models", "delete", "digits") == (0, "deleted model digits\n", "")


PARTICULARS = (
    "&description=%23+Digits&tag=team%3Dvision&source_commit=9fceb02&run_url=https%3A%2F%2Fci.example%2F7"
    "&data_reference=d%403&parameter=lr%3D0.1&compatible_with=%40champion"
)


def test_push_says_where_the_version_came_from(fairlead: Fairlead, api: Any, file: Path) -> None:
    api.on(PUSH + PARTICULARS, version(tags={"team": "vision"}, compatible_with=1), status=201)

    code, said, complained = fairlead(
        *("models", "push", str(file), "--name", "digits", "--description", "# Digits", "--tag", "team=vision"),
        *("--source-commit", "9fceb02", "--run-url", "https://ci.example/7", "--data", "d@3"),
        *("--parameter", "lr=0.1", "--compatible-with", "@champion"),
    )

    assert (code, complained) == (0, "")
    assert ["tags", "team=vision"] in [line.split() for line in said.splitlines()]


@pytest.mark.parametrize(
    ("environment", "query"),
    [
        pytest.param(
            {
                "GITHUB_ACTIONS": "true",
                "GITHUB_SHA": "abc",
                "GITHUB_SERVER_URL": "https://github.example",
                "GITHUB_REPOSITORY": "me/it",
                "GITHUB_RUN_ID": "7",
            },
            "&source_commit=abc&run_url=https%3A%2F%2Fgithub.example%2Fme%2Fit%2Factions%2Fruns%2F7",
            id="GitHub Actions",
        ),
        pytest.param(
            {"GITLAB_CI": "true", "CI_COMMIT_SHA": "abc", "CI_PIPELINE_URL": "https://gitlab.example/7"},
            "&source_commit=abc&run_url=https%3A%2F%2Fgitlab.example%2F7",
            id="GitLab CI",
        ),
    ],
)
def test_push_in_ci_knows_the_commit_and_the_run(
    fairlead: Fairlead,
    api: Any,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    query: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    api.on(PUSH + query, version(), status=201)

    code, _, complained = fairlead("models", "push", str(file), "--name", "digits")

    assert (code, complained) == (0, "")


def test_tags_are_set_and_taken_away(fairlead: Fairlead, api: Any) -> None:
    api.on("PATCH /models/digits/versions/2", version(2, tags={"stage": "lab"}))

    code, said, _ = fairlead("models", "tag", "digits", "stage=lab", "--remove", "team", "--version", "2")

    assert (code, said) == (0, "tags of digits version 2: stage=lab\n")
    assert api.seen[0].document == {"tags": {"stage": "lab", "team": None}}


def test_a_description_comes_from_a_file(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    (at_home / "README.md").write_text("# Digits")
    api.on("PATCH /models/digits", {"name": "digits", "description": "# Digits"})

    code, said, _ = fairlead("models", "describe", "digits", "-f", "README.md")

    assert (code, said) == (0, "description of model digits: # Digits\n")
    assert api.seen[0].document == {"description": "# Digits"}


@pytest.mark.parametrize(("given", "sent"), [("@champion", "@champion"), ("none", "")])
def test_new_versions_must_fit_a_version(fairlead: Fairlead, api: Any, given: str, sent: str) -> None:
    api.on("PATCH /models/digits", {"name": "digits", "compatible_with": sent})

    code, said, _ = fairlead("models", "compatible", "digits", given)

    assert (code, said) == (0, f"compatible with of model digits: {sent or 'none'}\n")
    assert api.seen[0].document == {"compatible_with": sent}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("tag", "digits"), "nothing to change"),
        (("tag", "digits", "x"), "'x' is not of the form KEY=VALUE"),
        (("describe", "digits"), "give the description itself"),
        (("describe", "digits", "-f", "nothing.md"), "nothing.md cannot be read"),
    ],
)
def test_what_cannot_be_said_is_refused_here(
    fairlead: Fairlead, api: Any, arguments: tuple[str, ...], complaint: str
) -> None:
    code, _, complained = fairlead("models", *arguments)
    assert code == 1
    assert complained.startswith(complaint)
    assert api.seen == []


FOLDER = {"1/model.onnx": b"some model", "config.pbtxt": b"x" * 512}


@pytest.fixture
def folder(at_home: Path) -> Path:
    for name, content in FOLDER.items():
        (at_home / "digits" / name).parent.mkdir(parents=True, exist_ok=True)
        (at_home / "digits" / name).write_bytes(content)
    return at_home / "digits"


def test_push_of_a_folder_sends_it_as_an_archive(fairlead: Fairlead, api: Any, folder: Path) -> None:
    api.on("POST /models/digits/versions?filename=digits.tar", version(status="PENDING"), status=201)

    code, _, complained = fairlead("models", "push", str(folder), "--name", "digits")

    assert (code, complained) == (0, "")
    body, headers = api.seen[0].body, api.seen[0].headers
    assert headers["content-length"] == str(len(body))
    assert headers["x-content-sha256"] == hashlib.sha256(body).hexdigest()
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        assert {member.name: archive.extractfile(member).read() for member in archive} == FOLDER  # type: ignore[union-attr]


def test_push_of_a_folder_with_a_link_is_refused_here(fairlead: Fairlead, api: Any, folder: Path) -> None:
    (folder / "1" / "linked.onnx").symlink_to("model.onnx")

    code, _, complained = fairlead("models", "push", str(folder), "--name", "digits")

    assert code == 1
    assert "linked.onnx is no plain file" in complained
    assert api.seen == []


def test_push_of_an_empty_folder_is_refused_here(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    (at_home / "empty").mkdir()

    code, _, complained = fairlead("models", "push", "empty", "--name", "digits")

    assert code == 1
    assert complained.startswith("empty is empty")


IMPORT = {
    "id": 3,
    "model": "digits",
    "uri": "s3://models/digits/",
    "status": "PENDING",
    "reason": "",
    "bytes_done": 0,
    "bytes_total": None,
    "version": None,
    "created_at": "2026-01-01T00:00:00Z",
    "created_by": "ann",
}
ONE = "GET /models/digits/imports/3"


def test_push_of_a_uri_asks_for_an_import(fairlead: Fairlead, api: Any) -> None:
    api.on("POST /models/digits/imports", IMPORT, status=202)
    said_of_it = ["--tag", "team=vision", "--tag", "note=a=b", "--parameter", "lr=0.1", "--source-commit", "abc"]

    code, said, _ = fairlead("models", "push", "s3://models/digits/", "--name", "digits", *said_of_it, "-o", "json")

    assert (code, json.loads(said)["status"]) == (0, "PENDING")
    assert api.seen[0].document == {
        "uri": "s3://models/digits/",
        "tags": {"team": "vision", "note": "a=b"},
        "parameters": {"lr": "0.1"},
        "source_commit": "abc",
    }


def test_push_of_a_uri_waits_for_the_files_and_then_for_the_check(fairlead: Fairlead, api: Any) -> None:
    api.on("POST /models/digits/imports", IMPORT, status=202)
    came = {"bytes_done": 10, "bytes_total": 20}
    api.on(ONE, {**IMPORT, **came}, {**IMPORT, "status": "IMPORTED", "version": 4})
    api.on("GET /models/digits/versions/4", version(4, status="PENDING"), version(4))
    api.on("PUT /models/digits/aliases/champion", {"version": 4})

    code, said, _ = fairlead("models", "push", "s3://models/digits/", "--name", "digits", "--alias", "champion")

    assert code == 0
    assert ["version", "4"] in [line.split() for line in said.splitlines()]
    assert [seen.document for seen in api.seen if seen.method == "PUT"] == [{"version": 4}]


def test_an_import_that_fails_ends_with_3_and_its_reason(fairlead: Fairlead, api: Any) -> None:
    api.on("POST /models/digits/imports", IMPORT, status=202)
    api.on(ONE, {**IMPORT, "status": "FAILED", "reason": "there is nothing at s3://models/digits/"})

    code, _, told = fairlead("models", "push", "s3://models/digits/", "--name", "digits", "--wait")

    assert (code, told) == (3, "s3://models/digits/ was not imported: there is nothing at s3://models/digits/\n")


def test_a_sha256_is_for_files_elsewhere(fairlead: Fairlead, api: Any, file: Path) -> None:
    code, _, told = fairlead("models", "push", str(file), "--name", "digits", "--sha256", "0" * 64)
    assert (code, api.seen) == (1, [])
    assert "--sha256 is for files at a URI" in told


def test_imports_are_listed_with_how_far_they_came_and_stopped(fairlead: Fairlead, api: Any) -> None:
    page = {"results": [{**IMPORT, "bytes_done": 1024, "bytes_total": 2048}], "next": None}
    api.on("GET /models/digits/imports", page)
    api.on("DELETE /models/digits/imports/3", None, status=204)

    _, said, _ = fairlead("models", "imports", "digits")
    assert "1.0 KiB of 2.0 KiB" in said
    assert fairlead("models", "stop-import", "digits", "3")[:2] == (0, "import 3 of digits is stopped\n")


@pytest.mark.parametrize(
    ("words", "address", "told"),
    [
        (("versions", "delete", "digits", "1"), "/models/digits/versions/1", "deleted digits version 1\n"),
        (
            ("alias", "delete", "digits", "champion"),
            "/models/digits/aliases/champion",
            "deleted alias digits@champion\n",
        ),
    ],
)
def test_versions_and_aliases_are_deleted(
    fairlead: Fairlead, api: Any, words: tuple[str, ...], address: str, told: str
) -> None:
    api.on(f"DELETE {address}", None, status=204)

    assert fairlead(*words) == (0, told, "")
    assert [(seen.method, seen.path) for seen in api.seen] == [("DELETE", address)]


def test_a_rejected_version_is_checked_again(fairlead: Fairlead, api: Any) -> None:
    api.on("POST /models/digits/versions/4/recheck", version(4, status="PENDING"), status=202)
    api.on("GET /models/digits/versions/4", version(4, status="PENDING"), version(4))
    code, said, _ = fairlead("versions", "recheck", "digits", "4", "--wait", "-o", "json")
    assert (code, json.loads(said)["status"]) == (0, "READY")


def test_storage_is_shown_and_collected(fairlead: Fairlead, api: Any) -> None:
    kept = {"size_bytes": 2048, "unused_bytes": 1024, "collectable_bytes": 1024, "free_bytes": 0, "total_bytes": 4096}
    unnamed = {
        "model": "digits",
        "number": 3,
        "size_bytes": 1024,
        "status": "READY",
        "created_at": "",
        "remembered_by": 1,
    }
    models = [{"name": "digits", "versions": 2, "size_bytes": 2048}]
    api.on("GET /storage", {"store": {**kept, "unused": []}, "models": models, "unnamed": [unnamed]})
    api.on("POST /storage/collect", {"deleted": ["sha256:1"], "size_bytes": 1024})
    code, said, _ = fairlead("storage", "show")
    assert (code, "1.0 KiB" in said, "digits 3" in said) == (0, True, True)
    assert fairlead("storage", "collect")[:2] == (0, "deleted 1 artifact: 1.0 KiB\n")
