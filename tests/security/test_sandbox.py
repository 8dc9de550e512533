"""What a program cannot reach that runs where models run: it attacks, and all that it aims at is the test's."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from integrations.clusters.base import Job, JobKind
from integrations.clusters.local.confinement import REPLICA_LIMITS, confined, private
from integrations.clusters.local.jobs import jobs
from integrations.sandbox import ability, bubblewrap, launch
from integrations.sandbox.command import command
from integrations.sandbox.policy import Launch, Mode, NetworkAccess, Sandbox
from serving_runtime.shared import seccomp

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what the sandbox is made of is Linux's")

# Prints what each of its attempts came to: "ok", or the name of the error.
ATTACKER = """
import ctypes, json, os, socket, sys
asked = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")
def connect(family, address, kind=socket.SOCK_STREAM, protocol=0):
    with socket.socket(family, kind, protocol) as sock:
        sock.settimeout(5)
        sock.connect(address)
        sock.send(b"x")
def listen():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()
def append(path):
    with open(path, "a") as file:
        file.write("x")
attempts = {
    "own folder": lambda: append(asked["own"] + "/made"),
    "shared memory": lambda: append("/dev/shm/made") or os.unlink("/dev/shm/made"),
    "model": lambda: open(asked["model"]).read(),
    "change the model": lambda: append(asked["model"]),
    "take the model away": lambda: os.unlink(asked["model"]),
    "put beside the model": lambda: append(os.path.dirname(asked["model"]) + "/more"),
    "secret": lambda: open(asked["secret"]).read(),
    "secrets beside": lambda: os.listdir(os.path.dirname(asked["secret"])),
    "terminal": lambda: open("/dev/tty").close(),
    "passwords": lambda: open("/etc/shadow").read(),
    "environment of the platform": lambda: open(f"/proc/{asked['platform']}/environ").read(),
    "memory of the platform": lambda: open(f"/proc/{asked['platform']}/mem", "rb").read(1),
    "signal": lambda: os.kill(asked["platform"], 0),
    "listen": listen,
    "server": lambda: connect(socket.AF_INET, ("127.0.0.1", asked["port"])),
    "multipath": lambda: connect(socket.AF_INET, ("127.0.0.1", asked["port"]), protocol=262),
    "datagram": lambda: connect(socket.AF_INET, ("127.0.0.1", asked["port"]), socket.SOCK_DGRAM),
    "socket file": lambda: connect(socket.AF_UNIX, asked["socket"]),
    "abstract socket": lambda: connect(socket.AF_UNIX, "\\0" + asked["abstract"]),
    "namespace": lambda: call(272, 0x10000000),
    "io_uring": lambda: call(425, 1, ctypes.create_string_buffer(120)),
    "trace": lambda: call(101, 16, asked["platform"], 0, 0),
    "read memory": lambda: call(310, asked["platform"], None, 0, None, 0, 0),
}
for name, attempt in attempts.items():
    try:
        attempt()
        attempts[name] = "ok"
    except OSError as error:
        attempts[name] = type(error).__name__
print(json.dumps(attempts))
"""
ALLOWED = {"own folder", "shared memory", "model", "listen"}


@pytest.fixture
def aims(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """What the attacker is let loose on: a secret, and servers of the machine that all would answer it."""
    secret = tmp_path / "home" / "secret-key"
    secret.parent.mkdir()
    secret.write_text("secret")
    path, abstract = str(tmp_path / "socket"), f"fairlead-test-{os.getpid()}"
    servers = [socket.create_server(("127.0.0.1", 0))]
    for address in (path, f"\0{abstract}"):
        servers.append(socket.socket(socket.AF_UNIX))
        servers[-1].bind(address)
        servers[-1].listen()
    yield {
        "secret": str(secret),
        "platform": os.getpid(),
        "port": servers[0].getsockname()[1],
        "socket": path,
        "abstract": abstract,
    }
    for server in servers:
        server.close()


def attack(tmp_path: Path, aims: dict[str, Any], network: NetworkAccess, *outer: str) -> dict[str, str]:
    """Return what each attempt came to, where the runtime of a replica would run."""
    model, own = tmp_path / "repository" / "digits" / "1" / "model.onnx", tmp_path / "own"
    own.mkdir()
    model.parent.mkdir(parents=True)
    model.write_bytes(b"model")
    told = {**aims, "model": str(model), "own": str(own)}
    program = [sys.executable, "-I", "-c", ATTACKER, json.dumps(told)]
    sandbox = confined(program, read=[tmp_path / "repository"], write=[own], network=network)
    inside = command(program, sandbox=sandbox, limits=REPLICA_LIMITS, folder=str(own))
    if outer:  # its parent is the outer launcher's process, which becomes the inner one
        inside[4] = Launch(os.getpid(), sandbox=sandbox).to_json()
    done = subprocess.run(
        [*outer, *inside],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"PATH": os.environ["PATH"], **private(own)},
    )
    assert done.returncode == 0, done.stderr
    found = dict(json.loads(done.stdout))
    assert found["terminal"] in ("PermissionError", "FileNotFoundError")  # without a sandbox it may be missing, too
    return found


def without_namespaces(tmp_path: Path) -> list[str]:
    """Return what starts a program that may make no namespaces: in a sandbox of all files of the machine."""
    every = tuple(map(str, Path("/").iterdir()))
    return command([], sandbox=Sandbox(read=every, write=(str(tmp_path),), network=NetworkAccess.ALL))


def with_bubblewrap_alone() -> list[str]:
    """Return what starts a program that may make namespaces by bubblewrap only: `unshare` is refused, `clone` is not.

    As by Ubuntu's AppArmor, which goes by the program.
    """
    code = """
import ctypes, os, struct, sys
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 272), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
"""
    return [sys.executable, "-I", "-c", code]


def reached(found: dict[str, str]) -> set[str]:
    return {name for name, outcome in found.items() if outcome == "ok"}


@pytest.fixture(scope="module")
def whole() -> None:
    """Skip where this machine cannot give all of the sandbox."""
    if lacks := ability.shortfall(Mode.BEST):
        pytest.skip(lacks)


@pytest.mark.usefixtures("whole")
class TestWhole:
    """On a machine that can give all of it, as those that run these tests before a change lands."""

    @pytest.mark.parametrize("network", [NetworkAccess.NONE, NetworkAccess.LOOPBACK, NetworkAccess.LISTEN])
    def test_a_model_reaches_its_own_files_and_no_more(
        self, tmp_path: Path, aims: dict[str, Any], network: NetworkAccess
    ) -> None:
        into_the_void = {"datagram"} if network.own else set()  # nobody is there to get it
        assert reached(attack(tmp_path, aims, network)) == ALLOWED | into_the_void

    def test_with_a_network_it_reaches_servers_and_still_no_files(self, tmp_path: Path, aims: dict[str, Any]) -> None:
        found = reached(attack(tmp_path, aims, NetworkAccess.ALL))
        assert found - {"datagram", "multipath"} == ALLOWED | {"server"}

    def test_a_job_is_inside(self, tmp_path: Path, aims: dict[str, Any]) -> None:
        artifact = tmp_path / "artifact"
        artifact.mkdir()
        (artifact / "model.onnx").write_bytes(b"model")
        code = (
            f"import json, os, sys; told = json.loads({json.dumps(aims)!r}); "
            "told |= {'model': sys.argv[2] + '/1/model.onnx', 'own': os.environ['HOME']}; "
            f"sys.argv[1:] = [json.dumps(told)]; exec({ATTACKER!r})"
        )
        runtime = (sys.executable, "-I", "-c", code)
        done = jobs.run(Job(JobKind.INSPECT, artifact.as_uri(), 60), tmp_path / "jobs", runtime=runtime)
        assert (done.exit_code, done.message) == (0, "")
        assert reached(json.loads(done.output)) == ALLOWED | {"datagram"}


def test_without_namespaces_the_rest_of_the_wall_stands(tmp_path: Path, aims: dict[str, Any]) -> None:
    """As in a container, whose own filter refuses `unshare`."""
    found = attack(tmp_path, aims, NetworkAccess.LISTEN, *without_namespaces(tmp_path))
    assert reached(found) == ALLOWED - {"shared memory"}


@pytest.mark.usefixtures("whole")
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the filter that refuses `unshare` is of x86-64")
@pytest.mark.skipif(not bubblewrap.works(), reason="bubblewrap is not installed: apt-get install bubblewrap")
class TestBubblewrap:
    """Where it may make namespaces, and the launcher may not."""

    @pytest.mark.parametrize("network", [NetworkAccess.NONE, NetworkAccess.LISTEN])
    def test_it_gives_the_namespaces(self, tmp_path: Path, aims: dict[str, Any], network: NetworkAccess) -> None:
        into_the_void = {"datagram"} if network.own else set()
        assert reached(attack(tmp_path, aims, network, *with_bubblewrap_alone())) == ALLOWED | into_the_void

    def test_with_it_the_sandbox_is_whole_and_a_job_sees_its_own_processes(self, tmp_path: Path) -> None:
        program = [
            sys.executable,
            "-I",
            "-c",
            "import os; print(len([n for n in os.listdir('/proc') if n.isdecimal()]))",
        ]
        sandbox = replace(confined(program, read=[], write=[], network=NetworkAccess.NONE), own_processes=True)
        inside = command(program, sandbox=sandbox)
        inside[4] = Launch(os.getpid(), sandbox=sandbox, mode=Mode.REQUIRED).to_json()
        done = subprocess.run(
            [*with_bubblewrap_alone(), *inside], capture_output=True, text=True, check=False, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert int(done.stdout) <= 2, "bubblewrap's own first process, and the program"

    def test_a_server_keeps_its_sockets_and_ends_in_its_own_time(self, tmp_path: Path) -> None:
        code = (
            "import signal, socket, sys; sock = socket.socket(fileno=int(sys.argv[1]))\n"
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
            "print(sock.getsockname(), flush=True)\n"
            "signal.pause()"
        )
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(tmp_path / "http"))
            program = [sys.executable, "-I", "-c", code, str(bound.fileno())]
            sandbox = confined(program, read=[], write=[], network=NetworkAccess.NONE)
            inside = command(program, sandbox=sandbox)
            inside[4] = Launch(os.getpid(), sandbox=sandbox).to_json()
            with subprocess.Popen(
                [*with_bubblewrap_alone(), *inside],
                stdout=subprocess.PIPE,
                text=True,
                process_group=0,
                pass_fds=[bound.fileno()],
            ) as server:
                assert server.stdout is not None
                assert server.stdout.readline() == f"{tmp_path / 'http'}\n"
                os.killpg(server.pid, signal.SIGTERM)
                assert server.wait(60) == 7


def test_where_all_of_it_is_required_nothing_starts_without(tmp_path: Path) -> None:
    told = Launch(os.getpid(), sandbox=Sandbox(read=("/usr", "/bin")), mode=Mode.REQUIRED).to_json()
    inner = [sys.executable, "-I", "-S", launch.__file__, told, "touch", str(tmp_path / "started")]
    done = subprocess.run(
        [*without_namespaces(tmp_path), *inner], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == launch.NOT_POSSIBLE
    assert done.stderr.startswith(f"{launch.REFUSAL}namespaces: ")
    assert not (tmp_path / "started").exists()


@pytest.mark.usefixtures("whole")
@pytest.mark.skipif(not shutil.which("unshare"), reason="unshare is not installed: apt-get install util-linux")
@pytest.mark.parametrize(("mode", "exit_code"), [(Mode.BEST, 0), (Mode.REQUIRED, launch.NOT_POSSIBLE)])
def test_where_proc_may_not_be_mounted_a_job_sees_the_machines(tmp_path: Path, mode: Mode, exit_code: int) -> None:
    """As in a container that may make namespaces, and hides parts of /proc."""
    hides = ["unshare", "-Urm", "sh", "-c", 'mount --bind /dev/null /proc/version && exec "$@"', "sh"]
    program = [sys.executable, "-I", "-c", "import os; print(os.getpid(), os.readlink('/proc/self'))"]
    sandbox = confined(program, read=[], write=[tmp_path], network=NetworkAccess.NONE)
    inside = command(program, sandbox=sandbox)
    inside[4] = Launch(os.getpid(), sandbox=replace(sandbox, own_processes=True), mode=mode).to_json()
    done = subprocess.run([*hides, *inside], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == exit_code, done.stderr
    if mode is Mode.REQUIRED:
        assert "processes: /proc may not be mounted" in done.stderr
    else:
        number, of_the_machine = map(int, done.stdout.split())
        assert (number, of_the_machine > number) == (2, True)


def test_limits_hold(tmp_path: Path) -> None:
    code = (
        "import resource; print(*(resource.getrlimit(getattr(resource, f'RLIMIT_{n}'))[1] for n in ('CORE', 'FSIZE')))"
    )
    started = command([sys.executable, "-c", code], limits={"core": 0, "fsize": 4096})
    done = subprocess.run(started, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["0", "4096"]


def test_the_kernel_ends_models_first_where_it_has_no_memory(tmp_path: Path) -> None:
    code = "print(open('/proc/self/oom_score_adj').read())"
    program = [sys.executable, "-I", "-c", code]
    started = command(program, sandbox=confined(program, read=[], write=[tmp_path], network=NetworkAccess.LISTEN))
    done = subprocess.run(started, capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) > int(Path("/proc/self/oom_score_adj").read_text())


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("unix", [True, False])
@pytest.mark.parametrize("connects", [True, False])
@pytest.mark.parametrize("sockets", [True, False])
def test_every_jump_of_the_filter_lands_inside_it(machine: str, unix: bool, connects: bool, sockets: bool) -> None:
    program = seccomp.program(machine, unix=unix, connects=connects, sockets=sockets)
    steps = [program[at : at + 8] for at in range(0, len(program), 8)]
    for place, step in enumerate(steps):
        code, then, otherwise = int.from_bytes(step[:2], "little"), step[2], step[3]
        if code & 7 == 5:  # a jump
            assert place + 1 + max(then, otherwise) < len(steps)
    assert steps[-1][0] == 6  # the last returns
