"""Files of programs, and the plan that is made of one."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from serving_runtime.proxy.options import V1, ProxyOptions, Target, Targets
from serving_runtime.proxy.programs import programs_file
from serving_runtime.proxy.programs.free_ports import free_ports
from serving_runtime.proxy.programs.plan import Endpoint, Ports, expanded, planned
from serving_runtime.proxy.programs.programs_file import BadPrograms, parsed

PORTS = {"predictor": Ports(1, 2), "transformer": Ports(3, 4), "explainer": Ports(5, 6)}
RUNTIME = {"command": ["serve"], "folder": "/", "runtime": True}


def entry(**fields: Any) -> dict[str, Any]:
    return {"command": ["serve", "--at=$(PORT)"], "folder": "/srv", "env": {"A": "1"}, **fields}


def options(protocol: str = "v2") -> ProxyOptions:
    return ProxyOptions(target_port=0, model_name="digits", protocol=protocol)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "the file must be a JSON object, not list"),
        ({}, "'predictor' is missing"),
        ({"predictor": entry(), "router": entry()}, "'router' is no program; there are predictor, transformer"),
        ({"predictor": "serve"}, "predictor must be a JSON object, not str"),
        ({"predictor": entry(image="x")}, "predictor.image is no field; there are command, env, folder, runtime"),
        ({"predictor": entry(command="serve")}, "predictor.command must be a list of words"),
        ({"predictor": entry(command=[])}, "predictor.command must be a list of words"),
        ({"predictor": entry(command=[""])}, "predictor.command must be a list of words"),
        ({"predictor": entry(command=["serve", 8080])}, "predictor.command must be a list of words"),
        ({"predictor": entry(command=["a\0b"])}, "predictor.command must be a list of words"),
        ({"predictor": entry(), "explainer": entry(folder="srv")}, "explainer.folder must be an absolute path"),
        ({"predictor": entry(folder=None)}, "predictor.folder must be an absolute path"),
        ({"predictor": entry(env=["A=1"])}, "predictor.env must be a JSON object, not list"),
        ({"predictor": entry(env={"A": 1})}, "predictor.env: 'A' must be a variable's name with a text"),
        ({"predictor": entry(env={"A=B": ""})}, "predictor.env: 'A=B' must be a variable's name"),
        ({"predictor": entry(runtime="yes")}, "predictor.runtime must be true or false"),
        (
            {"predictor": entry(), "transformer": entry(runtime=True)},
            "transformer.runtime is true, and only a predictor",
        ),
    ],
)
def test_a_file_that_cannot_be_run_is_refused_in_one_sentence(content: Any, message: str) -> None:
    with pytest.raises(BadPrograms) as error:
        parsed(content)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"{", "is not JSON"), (b" " * 5_000_000, "is larger than 4194304 bytes"), (b"{}", "'predictor' is missing")],
)
def test_a_file_is_removed_whatever_it_says_and_ends_the_command_with_2(
    tmp_path: Path, content: bytes, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from serving_runtime.__main__ import main  # noqa: PLC0415

    file = tmp_path / "programs"
    file.write_bytes(content)
    assert main(["proxy", f"--programs={file}", "--model_name=digits"]) == 2
    assert not file.exists()
    written = capsys.readouterr().err
    assert message in written
    assert len(written.splitlines()) == 1
    assert main(["proxy", f"--programs={file}", "--model_name=digits"]) == 2
    assert "cannot be read and removed: No such file or directory" in capsys.readouterr().err


def test_no_message_or_representation_has_the_value_of_a_variable(tmp_path: Path) -> None:
    file = tmp_path / "programs"
    file.write_text(json.dumps({"predictor": entry(env={"TOKEN": "secret-1"})}))
    file.chmod(stat.S_IRUSR)
    programs = programs_file.read(file)
    assert "secret-1" not in repr(programs) + repr(planned(programs, options(), PORTS))
    with pytest.raises(BadPrograms) as error:
        parsed({"predictor": entry(env={"TOKEN": "secret-1\0"})})
    assert "secret-1" not in str(error.value)


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("--http_port=$(PORT)", "--http_port=8080"),
        ("$(PORT)$(A)$(PORT)", "8080a8080"),
        ("$(NONE) $PORT ${PORT} $(PORT", "$(NONE) $PORT ${PORT} $(PORT"),
        ("$$(PORT) $$$(PORT) $$ $", "$(PORT) $8080 $ $"),
        ("$(SELF)", "$(PORT)"),
        ("$()", "$()"),
    ],
)
def test_words_are_expanded_as_those_of_containers(word: str, found: str) -> None:
    assert expanded(word, {"PORT": "8080", "A": "a", "SELF": "$(PORT)"}) == found


def test_a_predictor_alone_is_asked_by_its_protocol() -> None:
    plan = planned(parsed({"predictor": entry()}), options(V1), PORTS)
    assert [child.command for child in plan.children] == [("serve", "--at=1")]
    assert plan.children[0].env == {"A": "1", "PORT": "1"}
    assert plan.targets == Targets(Target(1, "the predictor", b"/v1/models/digits", reads_health=True))
    assert plan.grpc_port == 0


def test_a_runtime_gets_flags_and_the_endpoints_that_are_handed_over() -> None:
    handed = [Endpoint(("--grpc-address=fd:4",), (4,)), Endpoint(("--metrics-address=fd:5",), (5,))]
    plan = planned(parsed({"predictor": RUNTIME, "explainer": entry()}), options(V1), PORTS, handed)
    predictor, explainer = plan.children
    flags = ("--http-address=127.0.0.1", "--http-port=1", "--grpc-address=fd:4", "--metrics-address=fd:5")
    assert (predictor.command, predictor.descriptors) == (("serve", *flags), (4, 5))
    assert "PREDICTOR_GRPC_HOST" not in explainer.env
    runtime = Target(1, "the predictor", is_runtime=True)
    assert plan.targets == Targets(runtime, explainer=Target(5, "the explainer"))


def test_companions_find_what_they_call() -> None:
    every = {"predictor": RUNTIME, "transformer": entry(env={"PORT": "80"}), "explainer": entry()}
    plan = planned(parsed(every), options(), PORTS, [Endpoint(("--metrics-address=fd:5",), (5,))])
    predictor, transformer, explainer = plan.children
    assert predictor.command[3:] == ("--grpc-address=127.0.0.1", "--grpc-port=2", "--metrics-address=fd:5")
    called = ("--model_name=digits", "--predictor_host=127.0.0.1:1")
    assert transformer.command == ("serve", "--at=3", *called)
    assert transformer.env == {
        "PORT": "3",
        "GRPC_PORT": "4",
        "PREDICTOR_HOST": "127.0.0.1:1",
        "PREDICTOR_GRPC_HOST": "127.0.0.1:2",
    }
    assert explainer.env["PREDICTOR_HOST"] == "127.0.0.1:3"
    assert explainer.env["PREDICTOR_GRPC_HOST"] == "127.0.0.1:4"
    assert [target.port for target in plan.targets] == [1, 3, 5]
    assert plan.grpc_port == 4


def test_ports_of_programs_differ() -> None:
    ports = [port for each in free_ports().values() for port in each]
    assert len(set(ports)) == 6
    assert all(0 < port < 65536 for port in ports)
