"""Trials, builds and searches that take too long are stopped on their pages, and what ran for them here ends.

What a search found before is looked at and applied, and clients wait less.
"""

import re
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from playwright.sync_api import Page, expect

from tests.browser.whole.desk import WAIT_MS, Desk, ask, see
from tests.browser.whole.driven import drives
from tests.browser.whole.served import WAIT_S, answered_by, ask_linear, bring
from tests.e2e.harness import Platform, family, until

pytestmark = [pytest.mark.browser, pytest.mark.e2e]
HOLDS_BACK_S = 0.03
SLOW_CONFIG = """
max_batch_size: 8
dynamic_batching { preferred_batch_size: 8 max_queue_delay_microseconds: 30000 }
"""
ROWS, TURNS = 20_000, 200


def counting_model(path: Path) -> Path:
    """Write a model that counts up to what it is asked, which may take longer than anybody waits."""
    scalar, flag = helper.make_tensor_value_info, TensorProto.BOOL
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Add", ["before", "one"], ["after"])],
        "turn",
        [scalar("turn", TensorProto.INT64, []), scalar("go", flag, []), scalar("before", TensorProto.FLOAT, [])],
        [scalar("on", flag, []), scalar("after", TensorProto.FLOAT, [])],
        [helper.make_tensor("one", TensorProto.FLOAT, [], [1.0])],
    )
    graph = helper.make_graph(
        [
            helper.make_node("Squeeze", ["turns"], ["most"]),
            helper.make_node("Loop", ["most", "yes", "zero"], ["sum"], body=body),
            helper.make_node("Unsqueeze", ["sum", "axis"], ["counted"]),
        ],
        "counting",
        [helper.make_tensor_value_info("turns", TensorProto.INT64, [1])],
        [helper.make_tensor_value_info("counted", TensorProto.FLOAT, [1])],
        [
            helper.make_tensor("yes", flag, [], [True]),
            helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0]),
            helper.make_tensor("axis", TensorProto.INT64, [1], [0]),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())
    return path


def deep_folder(path: Path) -> Path:
    """Write a folder's archive: a model of many layers, and far more rows than its calibration needs."""
    names = ["x", *(f"x{turn}" for turn in range(1, TURNS)), "y"]
    graph = helper.make_graph(
        [helper.make_node("MatMul", [before, "w"], [after]) for before, after in pairwise(names)],
        "deep",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 32])],
        [onnx.numpy_helper.from_array(np.eye(32, dtype=np.float32), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    np.savez_compressed(path.with_name("calibration.npz"), x=np.ones((ROWS, 32), np.float32))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("1/model.onnx", model.SerializeToString())
        archive.writestr("config.pbtxt", "max_batch_size: 8\n")
        archive.write(path.with_name("calibration.npz"), "calibration.npz")
    return path


def slow_folder(path: Path, content: bytes) -> Path:
    """Write a folder's archive: a model that holds requests back until there are more of them."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("1/model.onnx", content)
        archive.writestr("config.pbtxt", SLOW_CONFIG)
    return path


def has_job(platform: Platform, verb: str) -> bool:
    """Return whether the runtime works for a trial, build or search."""
    return any(f" {verb} " in line for line in family(platform.home).values())


def stop(page: Page, platform: Platform, verb: str) -> None:
    """Stop what the page follows, after the question; return when it said so and nothing of it runs any more."""
    assert has_job(platform, verb)
    ask(page, "Stop…", "Stop")
    see(page, "Somebody stopped it.")
    expect(page.get_by_role("button", name="Stop…")).to_have_count(0)
    until(lambda: not has_job(platform, verb), WAIT_S, f"the end of `{verb}`")


@drives("POST trial-start", "POST trial-stop")
def test_a_trial_that_takes_too_long_is_stopped(desk: Desk, platform: Platform, tmp_path: Path) -> None:
    page = desk.page()
    bring(page, counting_model(tmp_path / "counting.onnx"))
    page.get_by_role("link", name="Try it").click()
    turns, outcome = page.get_by_label("turns as JSON"), page.locator("#try-outcome section").first
    turns.fill("[1000000000]")
    page.get_by_role("button", name="Try it").click()
    expect(outcome.get_by_role("progressbar", name="Answering")).to_be_visible(timeout=WAIT_MS)  # by asking again
    assert has_job(platform, "try")
    outcome.get_by_role("button", name="Stop it").focus()
    page.keyboard.press("Enter")
    expect(outcome).to_contain_text("The version was not tried: somebody stopped it")
    until(lambda: not has_job(platform, "try"), WAIT_S, "the end of the trial")
    desk.look(page, "trial-stopped")

    turns.fill("[1000]")
    page.get_by_role("button", name="Try it").click()
    expect(outcome.get_by_label("Values of counted")).to_contain_text("1000", timeout=WAIT_MS)


@drives("POST build-stop")
def test_a_build_that_takes_too_long_is_stopped(desk: Desk, platform: Platform, tmp_path: Path) -> None:
    page = desk.page()
    bring(page, deep_folder(tmp_path / "deep.zip"))
    page.get_by_role("link", name="Build…").click()
    page.get_by_label("What", exact=True).select_option("ONNX in INT8")
    page.get_by_role("button", name="Start build").click()
    see(page, re.compile(rf"Calibrating: [1-9]\d* of {ROWS} rows\."))  # by the stream
    desk.look(page, "build-going")
    stop(page, platform, "build")
    desk.look(page, "build-stopped")
    page.goto("/models/deep/")
    expect(page.get_by_role("link", name="version 2")).to_have_count(0)


@drives("POST tuning-look", "POST tuning-stop", "POST config-apply")
def test_a_search_makes_clients_wait_less_and_another_is_stopped(
    desk: Desk, platform: Platform, tmp_path: Path, linear_model: Callable[..., bytes]
) -> None:
    page = desk.page()
    bring(page, slow_folder(tmp_path / "linear.zip", linear_model()))
    page.goto("/deploy/linear/1/")
    page.get_by_role("button", name="Create service").click()
    page.wait_for_url("**/services/default/linear/")
    expect(page.locator("#service-header").get_by_text("Ready", exact=True)).to_be_visible(timeout=WAIT_MS)
    assert waits_s(platform) > HOLDS_BACK_S
    page.goto("/models/linear/versions/1/")
    page.get_by_role("link", name="Tune…").click()
    page.get_by_label("Longest latency, ms").fill("500")
    page.get_by_label("Time limit").fill("45s")
    page.get_by_test_id("limits").click()
    page.get_by_label("Maximum concurrent requests").fill("1")  # never a full batch, so that each is held back
    page.get_by_role("button", name="Start the search").click()
    expect(page.get_by_role("heading", name="Results")).to_be_visible(timeout=WAIT_MS)
    page.get_by_role("button", name="See what would change").click()
    expect(page.locator("#config-plan ins").first).to_be_visible(timeout=WAIT_MS)
    desk.look(page, "tuning-looked-at")
    ask(page, "Apply…", "Apply")
    page.wait_for_url("**/services/default/linear/")
    answered_by(platform, "linear", "linear-00002")
    assert waits_s(platform) < HOLDS_BACK_S

    page.goto("/models/linear/versions/1/tunings/")
    page.get_by_label("Longest latency, ms").fill("500")
    page.keyboard.press("Enter")
    expect(page.locator("#tuning-state")).to_contain_text(re.compile(r"\d+ measured"), timeout=WAIT_MS)
    stop(page, platform, "tune")
    desk.look(page, "tuning-stopped")


def waits_s(platform: Platform) -> float:
    """Return for how long a client waits for the service's answer at least."""
    return min(ask_linear(platform, "linear").raise_for_status().elapsed.total_seconds() for _ in range(20))
