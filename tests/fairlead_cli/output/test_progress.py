"""Lines for a log while a command waits."""

from fairlead_cli.output.progress import FIGURES_EVERY_S, Reporter


class Clock:
    """Says the time that a test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_turn_is_told_at_once_and_only_once() -> None:
    told: list[str] = []
    teller = Reporter(told.append, Clock())

    for line, turn in [("held 10 s", 1), ("held 10 s", 1), ("asked for 50 %", 2), ("held 10 s", 1)]:
        teller.see(line, turn)

    assert told == ["held 10 s", "asked for 50 %", "held 10 s"]


def test_figures_alone_are_told_every_half_minute() -> None:
    told: list[str] = []
    clock = Clock()
    teller = Reporter(told.append, clock)

    for second in range(3600):
        clock.now_s = 100.0 + second
        teller.see(f"{second} requests", "analysis")

    assert told == [f"{second} requests" for second in range(0, 3600, int(FIGURES_EVERY_S))]


def test_what_stays_the_same_is_not_told_again() -> None:
    told: list[str] = []
    clock = Clock()
    teller = Reporter(told.append, clock)

    teller.see("no traffic", "NoTraffic")
    clock.now_s += 10 * FIGURES_EVERY_S
    teller.see("no traffic", "NoTraffic")

    assert told == ["no traffic"]
