from typing import Any

from benchmarks.serving.gateway import added, lines


def _row(form: str, calls: int, direct_us: float, through_us: float, *, server_us: float = 20.0) -> dict[str, Any]:
    direct = {"p50_us": direct_us, "p99_us": 2 * direct_us, "server_us": server_us}
    through = {"p50_us": through_us, "p99_us": 2 * through_us, "server_us": server_us + 5, "envoy_us": 2 * server_us}
    return {"round": 1, "form": form, "calls": calls, "direct": direct, "through": through}


def test_what_envoy_adds_is_a_median_of_differences_within_rounds() -> None:
    busy = _row("http", 1, 1000, 1100)  # other work slows both ways of a round
    found = added([_row("http", 1, 100, 150), busy, _row("http", 1, 110, 170)])
    assert (found.p50_us, found.added_p50_us) == (110, 60)
    assert (found.p99_us, found.added_p99_us) == (220, 120)
    assert (found.server_us, found.behind_us, found.envoy_us) == (20, 25, 40)
    assert found.envoy_share == 2


def test_the_table_has_a_line_for_each_point() -> None:
    table = list(lines([_row("http", 1, 100, 150), _row("grpc", 32, 1000, 2500, server_us=30)]))
    assert table[2:] == [
        "| HTTP binary, 1 at once | 100 | 50 | 200 | 100 | 20 | 25 | 40 | 2.0 |",
        "| gRPC, 32 at once | 1,000 | 1,500 | 2,000 | 3,000 | 30 | 35 | 60 | 2.0 |",
    ]
    assert len({line.count("|") for line in table}) == 1


def test_keys_are_compared_with_the_same_round_without_them() -> None:
    def row(envoy_us: float, guarded_us: float, per_s: float) -> dict[str, Any]:
        made = _row("http", 1, 100, 150)
        made["through"].update(envoy_us=envoy_us, per_s=1000)
        return {**made, "guarded": {**made["through"], "envoy_us": guarded_us, "per_s": per_s}}

    rows = [row(40, 50, 950), row(80, 90, 940), row(40, 52, 900)]
    found = added(rows)
    assert (found.keys_us, found.keys_share) == (10, 0.94)
    assert [line.split(" | ")[-2:] for line in lines(rows)][2] == ["10", "0.94 |"]
