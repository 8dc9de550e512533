import pytest

from benchmarks.serving.soak import Round, verdict


def _rounds(*rss_mb: float, descriptors: int = 20) -> list[Round]:
    return [Round(rss, descriptors, 1000.0) for rss in rss_mb]


@pytest.mark.parametrize(
    ("rounds", "leaks"),
    [
        pytest.param(_rounds(200, 250, 260, 260, 261, 260, 262, 261), [], id="flat once caches are full"),
        pytest.param(
            _rounds(200, 250, 260, 262, 270, 280, 290, 300),
            ["resident memory grew from 261.0 to 295.0 MB"],
            id="memory that grows round by round",
        ),
        pytest.param(
            _rounds(*[200.0] * 6) + _rounds(200, 200, descriptors=21),
            ["open descriptors grew from 20 to 21"],
            id="a descriptor left behind",
        ),
        pytest.param(
            _rounds(*[200.0] * 3) + _rounds(*[200.0] * 5, descriptors=21), [], id="a model that moves into a thread"
        ),
        pytest.param(
            _rounds(*[200.0] * 7) + _rounds(200, descriptors=26), [], id="connections that end after they were counted"
        ),
        pytest.param(_rounds(200), [], id="one round says nothing"),
    ],
)
def test_what_leaks_is_told(rounds: list[Round], leaks: list[str]) -> None:
    assert verdict(rounds) == leaks
