"""Version metadata of `fairlead models push`, besides the files; in CI commit and run come from the environment."""

import argparse
import os
from collections.abc import Mapping

from fairlead_cli.errors import CliError

_MAPPINGS = {"tag": "tags", "parameter": "parameters"}


def push_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("metadata of the version")
    group.add_argument("--description", metavar="MARKDOWN", help="description of the version")
    group.add_argument("--tag", action="append", default=[], metavar="KEY=VALUE", help="tag; may be repeated")
    group.add_argument(
        "--source-commit",
        metavar="COMMIT",
        help="commit of the training code (in GitHub Actions and GitLab CI: that of the run)",
    )
    group.add_argument(
        "--run-url", metavar="URL", help="URL of the CI run (in GitHub Actions and GitLab CI: that of the run)"
    )
    group.add_argument("--data", dest="data_reference", metavar="REFERENCE", help="training data")
    group.add_argument(
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="training parameter, such as lr=0.1; may be repeated",
    )
    group.add_argument(
        "--compatible-with",
        metavar="VERSION",
        help="@ALIAS or version number; rejects the new version if it breaks clients of that one",
    )


def query(options: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> list[tuple[str, str]]:
    """Return what the options and the CI system say, as the query of the registration."""
    commit, run_url = _of_ci(environment)
    said = [
        ("description", options.description),
        *(("tag", pair(text)) for text in options.tag),
        ("source_commit", options.source_commit or commit),
        ("run_url", options.run_url or run_url),
        ("data_reference", options.data_reference),
        *(("parameter", pair(text)) for text in options.parameter),
    ]
    wanted = [] if options.compatible_with is None else [("compatible_with", options.compatible_with)]
    return [(name, text) for name, text in said if text] + wanted


def document(options: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> dict[str, object]:
    """Return the same as the fields of an import."""
    asked = query(options, environment)
    said: dict[str, object] = {name: text for name, text in asked if name not in _MAPPINGS}
    for name, field in _MAPPINGS.items():
        pairs = [text.partition("=") for of, text in asked if of == name]
        if pairs:
            said[field] = {key: value for key, _, value in pairs}
    return said


def pair(text: str) -> str:
    """Return `text` if it is KEY=VALUE."""
    if not text.partition("=")[0] or "=" not in text:
        raise CliError(f"{text!r} is not of the form KEY=VALUE")
    return text


def _of_ci(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return commit and run address as GitHub Actions or GitLab CI name them; empty elsewhere."""
    if environment.get("GITHUB_ACTIONS") == "true":
        server, repository = environment.get("GITHUB_SERVER_URL"), environment.get("GITHUB_REPOSITORY")
        run = environment.get("GITHUB_RUN_ID")
        url = f"{server}/{repository}/actions/runs/{run}" if server and repository and run else ""
        return environment.get("GITHUB_SHA", ""), url
    if environment.get("GITLAB_CI") == "true":
        return environment.get("CI_COMMIT_SHA", ""), environment.get("CI_PIPELINE_URL", "")
    return "", ""
