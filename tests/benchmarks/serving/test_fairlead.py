from pathlib import Path

from benchmarks.serving.peers.fairlead import IMAGE_ENVIRONMENT


def test_the_runtime_is_measured_in_the_environment_that_its_image_has() -> None:
    stage = (Path(__file__).parents[3] / "docker" / "Dockerfile").read_text().split(" AS runtime-base\n")[1]
    lines = stage.split("\nFROM ")[0].splitlines()
    assert IMAGE_ENVIRONMENT
    assert {f"ENV {name}={value}" for name, value in IMAGE_ENVIRONMENT.items()} <= set(lines)
