"""Plan of a replica: the command line and the variables of each program, and where the proxy forwards to. Pure.

    client --> proxy --> transformer (if any) --> predictor
                 `----> explainer (if any) ----> transformer or predictor

Programs listen on 127.0.0.1 at ports that the proxy has chosen. Companions find their predictor as on Kubernetes: by
`--model_name`, `--predictor_host` and variables (the control plane's manifests of companions).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from serving_runtime.proxy.options import ProxyOptions, Target, Targets
from serving_runtime.proxy.programs.programs_file import EXPLAINER, PREDICTOR, TRANSFORMER, Program, Programs

HOST = "127.0.0.1"

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


class Ports(NamedTuple):
    """Ports of one program."""

    http: int
    grpc: int


class Endpoint(NamedTuple):
    """An endpoint that the runtime serves in the proxy's stead.

    Attributes:
        flags: by which it listens there.
        descriptors: of bound sockets that it inherits.
    """

    flags: tuple[str, ...]
    descriptors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Child:
    """A program to start.

    Attributes:
        name: its role.
        descriptors: left open for it, with their numbers.
    """

    name: str
    command: tuple[str, ...]
    folder: str
    env: Mapping[str, str] = field(repr=False)
    descriptors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What to start, and where to forward to.

    Attributes:
        children: the predictor first.
        grpc_port: where bytes of gRPC connections go; 0 where the runtime serves them, or none does.
    """

    children: tuple[Child, ...]
    targets: Targets
    grpc_port: int = 0


def planned(
    programs: Programs, options: ProxyOptions, ports: Mapping[str, Ports], endpoints: Sequence[Endpoint] = ()
) -> Plan:
    """Return the plan.

    Args:
        ports: free ones, of each program.
        endpoints: handed over to a predictor that is the runtime.
    """
    children = [_predictor(programs, ports, endpoints)]
    first = predictor = _predictor_target(programs.predictor, options, ports[PREDICTOR].http)
    behind = explainer = None
    if programs.transformer is not None:
        grpc = ports[PREDICTOR].grpc if programs.predictor.is_runtime else 0
        children.append(_companion(TRANSFORMER, programs.transformer, options, ports, (predictor.port, grpc)))
        first, behind = Target(ports[TRANSFORMER].http, _called(TRANSFORMER)), predictor
    if programs.explainer is not None:
        grpc = ports[TRANSFORMER].grpc if programs.transformer is not None else 0
        children.append(_companion(EXPLAINER, programs.explainer, options, ports, (first.port, grpc)))
        explainer = Target(ports[EXPLAINER].http, _called(EXPLAINER))
    grpc_port = ports[TRANSFORMER].grpc if programs.transformer is not None else 0
    return Plan(tuple(children), Targets(first, explainer, behind), grpc_port)


def expanded(word: str, variables: Mapping[str, str]) -> str:
    """Return a word with `$(NAME)` replaced by the variable's value, as Kubernetes does in a container's commands.

    `$(NAME)` of an unknown variable stays, and `$$(NAME)` becomes the text `$(NAME)`.
    """

    def value(found: re.Match[str]) -> str:
        name = found[1]
        return "$" if name is None else variables.get(name, found[0])

    return _REFERENCE.sub(value, word)


def _predictor(programs: Programs, ports: Mapping[str, Ports], endpoints: Sequence[Endpoint]) -> Child:
    program, own = programs.predictor, ports[PREDICTOR]
    variables = {**program.env, "PORT": str(own.http)}
    if not program.is_runtime:
        return Child(PREDICTOR, _words(program, variables), program.folder, variables)
    flags = [f"--http-address={HOST}", f"--http-port={own.http}"]
    if programs.transformer is not None:
        flags += [f"--grpc-address={HOST}", f"--grpc-port={own.grpc}"]
    for endpoint in endpoints:
        flags += endpoint.flags
    descriptors = tuple(number for endpoint in endpoints for number in endpoint.descriptors)
    return Child(PREDICTOR, (*program.command, *flags), program.folder, variables, descriptors)


def _predictor_target(program: Program, options: ProxyOptions, port: int) -> Target:
    name = _called(PREDICTOR)
    return Target(port, name, is_runtime=True) if program.is_runtime else Target.of_options(options, port, name)


def _companion(
    name: str, program: Program, options: ProxyOptions, ports: Mapping[str, Ports], predictor: tuple[int, int]
) -> Child:
    """Return a companion's child; `predictor` is what it calls, by its ports of HTTP and, not 0, of gRPC."""
    http, grpc = predictor
    host = f"{HOST}:{http}"
    variables = {
        **program.env,
        "PORT": str(ports[name].http),
        "GRPC_PORT": str(ports[name].grpc),
        "PREDICTOR_HOST": host,
        **({"PREDICTOR_GRPC_HOST": f"{HOST}:{grpc}"} if grpc else {}),
    }
    own = (f"--model_name={options.model_name}", f"--predictor_host={host}")
    return Child(name, (*_words(program, variables), *own), program.folder, variables)


def _words(program: Program, variables: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(expanded(word, variables) for word in program.command)


def _called(name: str) -> str:
    return f"the {name}"
