import pytest

from benchmarks.serving import options


def test_nothing_asked_is_every_server_at_every_point() -> None:
    found = options.parse([], "")
    assert len(found.peers) == 8
    assert len(found.plan.points) > 10


def test_servers_and_points_are_chosen_by_their_names() -> None:
    found = options.parse(["--only", "triton", "fairlead", "--points", "image_mean/json"], "")
    assert [peer.name for peer in found.peers] == ["fairlead", "triton"]
    assert [(point.model, point.form) for point in found.plan.points] == [("image_mean", "json")]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--only", "fairlead", "trition"], "--only trition is not measured; what is: bentoml echo fairlead "),
        (["--points", "image_mean/jsn"], "--points image_mean/jsn is not measured; what is: bert_mini/http "),
    ],
)
def test_a_name_that_nobody_knows_ends_it_in_one_line_with_those_there_are(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        options.parse(arguments, "")
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.startswith(sentence)
    assert said.count("\n") == 1
