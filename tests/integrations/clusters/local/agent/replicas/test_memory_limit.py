from pathlib import Path

import pytest

from integrations.clusters.local.agent.__main__ import main
from integrations.clusters.local.agent.replicas.memory_limit import (
    Limit,
    Machine,
    MemoryPolicy,
    Use,
    is_short,
    largest,
    limit_of,
    overrun,
    size,
)

GIB = 1 << 30
EMPTY, SHORT = Machine(10 * GIB, 6 * GIB), Machine(10 * GIB, 921 << 20)
REQUESTS = MemoryPolicy(Limit.REQUESTS)


@pytest.mark.parametrize(
    ("requested", "policy", "limit"),
    [
        pytest.param(None, MemoryPolicy(), 9 * GIB, id="the machine but for a tenth"),
        pytest.param(GIB, MemoryPolicy(), 9 * GIB, id="a request is none by default"),
        pytest.param(GIB, REQUESTS, GIB, id="a request is where the operator says so"),
        pytest.param(None, REQUESTS, 9 * GIB, id="and nothing is requested"),
        pytest.param(11 * GIB, REQUESTS, 9 * GIB, id="and it is more than replicas may have"),
        pytest.param(None, MemoryPolicy(reserve_bytes=0), 10 * GIB, id="nothing is kept free"),
    ],
)
def test_the_limit(requested: int | None, policy: MemoryPolicy, limit: int) -> None:
    assert limit_of(requested, EMPTY, policy) == limit


def test_a_replica_goes_above_its_limit_and_not_at_it() -> None:
    assert overrun(Use("a", 2 * GIB, 2 * GIB), EMPTY, REQUESTS) == ""
    said = "used 2.5 GiB of memory, where it may have 2.0 GiB, and was killed"
    assert overrun(Use("a", 5 * GIB // 2, 2 * GIB), EMPTY, REQUESTS) == said


@pytest.mark.parametrize(
    ("machine", "uses", "name"),
    [
        pytest.param(EMPTY, [Use("a", 5 * GIB)], "", id="the machine has enough"),
        pytest.param(SHORT, [], "", id="no replica runs"),
        pytest.param(SHORT, [Use("a", GIB), Use("b", GIB // 2)], "", id="others than replicas take it"),
        pytest.param(SHORT, [Use("a", 2 * GIB), Use("b", 3 * GIB), Use("c", GIB)], "b", id="the largest"),
        pytest.param(SHORT, [Use("a", 2 * GIB), Use("b", 3 * GIB, 2 * GIB)], "a", id="what is above its request"),
    ],
)
def test_where_the_machine_is_short_of_memory_one_goes(machine: Machine, uses: list[Use], name: str) -> None:
    found, why = largest(uses, machine, MemoryPolicy())
    assert (found, bool(why)) == (name, bool(name))


def test_why_it_goes_says_how_short_the_machine_is() -> None:
    _, why = largest([Use("a", 4 * GIB)], SHORT, MemoryPolicy())
    left = "this machine had 921 MiB left of the 1.0 GiB that it keeps free"
    assert why == f"used 4.0 GiB of memory when {left}, and was killed"


def test_a_large_machine_keeps_no_more_free_than_a_gibibyte() -> None:
    assert not is_short(Machine(1000 * GIB, 2 * GIB), MemoryPolicy())


def test_with_no_reserve_the_machine_is_never_short() -> None:
    assert not is_short(Machine(100 * GIB, 0), MemoryPolicy(reserve_bytes=0))


def test_sizes_are_written_as_people_read_them() -> None:
    assert (size(3 << 19), size(5 << 29)) == ("2 MiB", "2.5 GiB")


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--memory-limit=all", "'all' is not one of machine, requests"),
        ("--memory-reserve-mib=-1", "'-1' is not a number of MiB, such as 1024"),
        ("--memory-reserve-mib=a tenth", "'a tenth' is not a number of MiB, such as 1024"),
    ],
)
def test_the_agent_refuses_what_is_no_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str, said: str
) -> None:
    with pytest.raises(SystemExit):
        main([f"--home={tmp_path}", flag])
    assert said in capsys.readouterr().err
