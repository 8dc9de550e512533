"""The search against surfaces whose best setting is known by trying all of them."""

import itertools
import math
import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving_runtime.tuning.measurement import Load, Measurement, Point, Seen, Trial
from serving_runtime.tuning.search import FINALISTS, REPEATS, choose, frontier, next_trial
from serving_runtime.tuning.space import DELAYS_US, Setting, Space, doubling, rungs


@dataclass(frozen=True)
class Machine:
    """A model on a machine, as a closed loop sees it: batches of what waits, instances that share the cores."""

    cores: int
    fixed_ms: float
    row_ms: float
    parallel: float  # of a run, 0..1 (Amdahl)
    noise: float = 0.0

    def load(self, trial: Trial, random: random.Random | None = None) -> Load:
        setting = trial.setting
        waiting = trial.concurrency / setting.instances
        batch = min(setting.batch_size, waiting) if setting.batch_size > 1 else 1.0
        run_ms = self.fixed_ms + self.row_ms * batch
        run_ms *= 1 - self.parallel + self.parallel / setting.intra_op_threads
        busy = min(setting.instances, trial.concurrency) * setting.intra_op_threads
        run_ms *= max(1.0, busy / self.cores)
        delay_ms = setting.queue_delay_us / 1000 if batch < setting.batch_size else 0.0
        per_s = min(setting.instances, trial.concurrency) * batch / (run_ms + delay_ms) * 1000
        mean_ms = trial.concurrency / per_s * 1000
        shaken = (lambda: 1.0) if random is None else (lambda: math.exp(random.gauss(0, self.noise)))
        return Load(per_s * shaken(), mean_ms, 1.3 * mean_ms * shaken())


def space(cores: int, *, most_batch: int = 32) -> Space:
    return Space(
        baseline=Setting(1, 4, 0, 1),
        instances=doubling(1, cores),
        batch_sizes=(1, *doubling(4, most_batch)),
        queue_delays_us=DELAYS_US,
        intra_op_threads=doubling(1, cores),
        concurrencies=rungs(128),
        cores=cores,
    )


def searched(where: Space, machine: Machine, limit_ms: float, budget: int, seed: int = 0) -> list[Measurement]:
    dice = random.Random(seed)
    measured: list[Measurement] = []
    while trial := next_trial(where, limit_ms, measured, len(measured) / budget):
        measured.append(Measurement(trial, machine.load(trial, dice if machine.noise else None)))
    return measured


def exhaustive(where: Space, machine: Machine, limit_ms: float) -> float:
    """Return the largest throughput within the limit of all settings, with any number at once."""
    loads = [machine.load(Trial(each, rung)) for each in where.settings() for rung in where.concurrencies]
    return max((load.requests_per_s for load in loads if load.p99_ms <= limit_ms), default=0.0)


machines = st.builds(
    Machine,
    cores=st.sampled_from([1, 2, 4, 8, 16]),
    fixed_ms=st.floats(0.05, 20),
    row_ms=st.floats(0.01, 10),
    parallel=st.floats(0, 0.95),
)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(machines, st.floats(1.5, 200))
def test_without_noise_it_finds_nearly_what_trying_everything_finds(machine: Machine, limit_ms: float) -> None:
    where = space(machine.cores)
    best = exhaustive(where, machine, limit_ms)
    measured = searched(where, machine, limit_ms, budget=400)
    chosen = choose(where, limit_ms, measured)
    if chosen is None:
        assert best == 0.0
    else:
        assert chosen.load.p99_ms <= limit_ms
        assert chosen.load.requests_per_s >= 0.75 * best
    assert len(measured) <= 400


@settings(max_examples=30, deadline=None, derandomize=True)
@given(machines, st.floats(5, 100), st.integers(0, 1000))
def test_noise_costs_little_and_the_limit_is_nearly_kept(machine: Machine, limit_ms: float, seed: int) -> None:
    noisy = Machine(machine.cores, machine.fixed_ms, machine.row_ms, machine.parallel, noise=0.05)
    where = space(noisy.cores)
    best = exhaustive(where, machine, 0.9 * limit_ms)
    chosen = choose(where, limit_ms, searched(where, noisy, limit_ms, budget=400, seed=seed))
    if chosen is not None:
        truth = machine.load(chosen.trial)
        assert truth.p99_ms <= 1.15 * limit_ms
        assert truth.requests_per_s >= 0.75 * best
    else:
        assert best == 0.0


QUIET = Machine(cores=4, fixed_ms=1.0, row_ms=0.1, parallel=0.3)


def test_it_tries_a_small_part_of_what_there_is() -> None:
    where = space(4)
    everything = sum(1 for _ in where.settings()) * len(where.concurrencies)
    assert len(searched(where, QUIET, 20, budget=10_000)) < everything / 5


def test_the_baseline_is_measured_first_and_as_often_as_the_finalists() -> None:
    where = space(4)
    measured = searched(where, QUIET, 20, budget=200)
    assert measured[0].trial.setting == where.baseline
    counts = Seen.of(measured).best(20)
    assert [point.repeats for point in counts if point.trial.setting == where.baseline] == [REPEATS]
    chosen = choose(where, 20, measured)
    assert chosen is not None
    assert chosen.repeats == REPEATS


def test_finalists_are_measured_in_turns() -> None:
    settings = [each.trial.setting for each in searched(space(4), QUIET, 20, budget=200)]
    assert all(first != second for first, second in itertools.pairwise(settings[-2 * FINALISTS :]))


def test_a_used_up_budget_ends_the_search_at_once() -> None:
    where = space(4)
    assert next_trial(where, 20, [], spent=1.0) is None
    assert len(searched(where, QUIET, 20, budget=7)) == 7


def test_a_setting_whose_server_does_not_start_is_left_out() -> None:
    where = space(4)
    measured: list[Measurement] = []
    while trial := next_trial(where, 20, measured, len(measured) / 300):
        fails = trial.setting.instances > 1
        load = None if fails else QUIET.load(trial)
        measured.append(Measurement(trial, load, "no memory" if fails else ""))
    tried = [each.trial.setting for each in measured if each.load is None]
    assert len(tried) == len(set(tried)) > 0
    chosen = choose(where, 20, measured)
    assert chosen is not None
    assert chosen.trial.setting.instances == 1


def test_where_nothing_keeps_to_the_limit_nothing_is_chosen() -> None:
    where, slow = space(2), Machine(cores=2, fixed_ms=100, row_ms=1, parallel=0)
    measured = searched(where, slow, 5, budget=200)
    assert choose(where, 5, measured) is None
    assert {each.trial.concurrency for each in measured} >= {1}


def test_of_settings_that_are_as_fast_the_cheapest_is_chosen_and_first_of_all_the_present_one() -> None:
    where = space(4)
    load, cheap, dear = Load(1000, 1, 2), Setting(1, 1, 0, 1), Setting(4, 32, 500, 1)
    measured = [Measurement(Trial(dear, 8), load), Measurement(Trial(cheap, 4), Load(980, 1, 2))]
    assert choose(where, 5, measured) == Point(Trial(cheap, 4), Load(980, 1, 2), 1)
    measured.append(Measurement(Trial(where.baseline, 4), Load(975, 1, 2)))
    assert choose(where, 5, measured) == Point(Trial(where.baseline, 4), Load(975, 1, 2), 1)


def test_nothing_slower_takes_the_place_of_the_present_one_where_the_budget_ends_before_that_is_measured_again() -> (
    None
):
    where, other = space(4), Setting(2, 4, 0, 1)
    slower = Measurement(Trial(other, 4), Load(750, 1, 2))
    now = Measurement(Trial(where.baseline, 4), Load(1000, 1, 2))
    assert choose(where, 5, [now, slower, slower]) == Point(now.trial, Load(1000, 1, 2), 1)
    faster = Measurement(Trial(other, 4), Load(1500, 1, 2))
    assert choose(where, 5, [now, faster, faster]) == Point(faster.trial, Load(1500, 1, 2), 2)


def test_what_was_measured_again_over_the_limit_is_not_chosen() -> None:
    where = space(4)
    trial = Trial(Setting(2, 4, 0, 1), 8)
    measured = [Measurement(trial, Load(1000, 1, p99)) for p99 in (4, 6, 7)]
    assert choose(where, 5, measured) is None


def test_the_frontier_holds_what_nothing_beats_in_both() -> None:
    def point(p99_ms: float, per_s: float) -> Point:
        return Point(Trial(Setting(), 1), Load(per_s, 1, p99_ms), 1)

    quick, worse, fast, slower = point(1, 100), point(2, 90), point(3, 300), point(4, 300)
    assert frontier([slower, fast, worse, quick]) == [quick, fast]


@pytest.mark.parametrize(
    ("instances", "threads", "batch", "delay", "allowed"),
    [
        pytest.param(4, 1, 1, 0, True, id="an instance per core"),
        pytest.param(2, 2, 1, 0, True, id="instances and threads that fill the cores"),
        pytest.param(4, 2, 1, 0, False, id="more threads than cores"),
        pytest.param(1, 1, 1, 100, False, id="a delay without batches"),
        pytest.param(1, 1, 4, 100, True, id="a delay for batches"),
    ],
)
def test_settings_that_make_no_sense_are_not_tried(
    instances: int, threads: int, batch: int, delay: int, allowed: bool
) -> None:
    assert space(4).allows(Setting(instances, batch, delay, threads)) is allowed
