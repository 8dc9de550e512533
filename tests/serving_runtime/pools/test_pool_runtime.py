"""A pool as two processes: names over HTTP, V1 and gRPC, and the admin call."""

import http.client
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import tritonclient.grpc as triton

from tests.serving_runtime._support import pools
from tests.serving_runtime._support.pools import Place
from tests.serving_runtime._support.processes import ServerProcess

INPUT = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}
NS, OTHER = "/serving/ns/svc", "/serving/other/svc"


@dataclass(frozen=True)
class Pool:
    """A running pool of ns.svc (2 answers with 3 columns, 3 with 5; 2 is the default) and other.svc (7, with 6)."""

    place: Place
    runtime: ServerProcess
    folder: Path


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    folder = tmp_path_factory.mktemp("pool")
    place = Place.below(folder)
    three, five, six = (pools.version(pools.artifact(folder / str(width), width)) for width in (3, 5, 6))
    pools.write(place.catalog, "ns.svc", {2: three, 3: five}, default=2)
    pools.write(place.catalog, "other.svc", {7: six})
    with pools.fetcher(place), pools.runtime(place, folder) as runtime:
        yield Pool(place, runtime, folder)
    pools.remove(place)


@pytest.fixture(scope="module")
def client(pool: Pool) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=pool.runtime.url, timeout=60) as found:
        yield found


def answer(client: httpx.Client, path: str, **headers: str) -> tuple[str, str, int]:
    """Return name, version and columns of an answer."""
    found = client.post(path, json=INPUT, headers=headers)
    assert found.status_code == 200, found.text
    content = found.json()
    return content["model_name"], content["model_version"], content["outputs"][0]["shape"][1]


def test_path_and_header_choose_the_version_and_equal_names_are_two_models(client: httpx.Client) -> None:
    for _ in range(2):  # cold, and then warm
        assert answer(client, f"{NS}/v2/models/svc/infer") == ("svc", "2", 3)
        assert answer(client, f"{NS}/v2/models/svc/versions/3/infer") == ("svc", "3", 5)
        assert answer(client, f"{NS}/v2/models/svc/infer", **{"Fairlead-Model-Version": "3"}) == ("svc", "3", 5)
        assert answer(client, f"{OTHER}/v2/models/svc/infer") == ("svc", "7", 6)
    predicted = client.post(f"{OTHER}/v1/models/svc:predict", json={"instances": [[1, 2, 3, 4]]}).json()
    assert len(predicted["predictions"][0]) == 6
    for path, status, said in (
        (f"{NS}/v2/models/svc/versions/9/infer", 404, "no version '9' in the pool's catalog; it has 2, 3"),
        (f"{NS}/v2/models/svc/versions/x/infer", 404, "is no number"),
        (f"{NS}/v2/models/other/infer", 404, "service 'svc' has one model, 'svc'"),
        ("/serving/ns/none/v2/models/none/infer", 404, "'ns.none' is not in the pool's catalog"),
    ):
        found = client.post(path, json=INPUT)
        assert (found.status_code, said in found.text) == (status, True), found.text


def test_metadata_of_a_model_have_the_services_name(client: httpx.Client) -> None:
    assert client.get(f"{NS}/v2/models/svc").json()["outputs"][0]["shape"] == [-1, 3]
    assert client.get(f"{NS}/v2/models/svc/versions/3").json()["name"] == "svc"
    assert client.get(f"{NS}/v2/models/svc/config").json()["name"] == "svc"
    assert client.get(f"{NS}/v2/models/svc/ready").json() == {"name": "svc", "ready": True}
    assert client.get(f"{NS}/v2/models/svc/stats").json()["model_stats"][0]["name"] == "svc"
    assert client.get(f"{NS}/v1/models/svc").json()["ready"] is True
    assert client.get(f"{NS}/v2/models").json() == {"models": ["svc"]}
    assert client.get(f"{NS}/v2/health/ready").json() == client.get("/v2/health/ready").json() == {"ready": True}
    assert client.get("/serving/ns/none/v2/models/none/ready").status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        *("/v2/models", "/v2/models/svc", "/v2/models/ns.svc@2", "/v2/repository/index", "/docs"),
        *(f"{NS}/v2/models/ns.svc@2", f"{NS}/v2/models/other.svc@7", f"{NS}/v2/models/stats", f"{NS}/v2/logging"),
        *(f"{NS}/v2/repository/index", f"{NS}/v2/repository/models/other.svc@7/unload", f"{NS}/v2/trace/setting"),
        *(f"{NS}/../../other/svc/v2/models/svc", f"{NS}/v2/models/%2e%2e/svc", f"{NS}/v2/systemsharedmemory/status"),
    ],
)
def test_a_services_paths_lead_to_nothing_else(pool: Pool, path: str) -> None:
    for method in ("GET", "POST"):
        connection = http.client.HTTPConnection("127.0.0.1", pool.runtime.http, timeout=60)
        connection.request(method, path, headers={"Content-Length": "0"})  # as it is, with its dots
        assert connection.getresponse().status in (404, 405)
        connection.close()


def grpc_answer(client: Any, *, version: str = "", **metadata: str) -> tuple[str, str, int]:
    given = triton.InferInput("x", [1, 4], "FP32")
    given.set_data_from_numpy(np.ones((1, 4), "f4"))
    headers = {name.replace("_", "-"): value for name, value in metadata.items()}
    found = client.infer("svc", [given], model_version=version, headers=headers)
    return found.get_response().model_name, found.get_response().model_version, found.as_numpy("y").shape[1]


def test_metadata_choose_the_service_over_grpc(pool: Pool) -> None:
    with triton.InferenceServerClient(f"127.0.0.1:{pool.runtime.grpc}") as client:
        for _ in range(3):
            assert grpc_answer(client, fairlead_service="ns/svc") == ("svc", "2", 3)
            assert grpc_answer(client, fairlead_service="ns/svc", version="3") == ("svc", "3", 5)
            assert grpc_answer(client, fairlead_service="ns/svc", fairlead_model_version="3") == ("svc", "3", 5)
            assert grpc_answer(client, fairlead_service="other/svc") == ("svc", "7", 6)
        for metadata, said in (
            ({}, "name the service in the metadata fairlead-service"),
            ({"fairlead_service": "ns/none"}, "'ns.none' is not in the pool's catalog"),
            ({"fairlead_service": "../svc"}, "name the service"),
        ):
            with pytest.raises(triton.InferenceServerException, match=said):
                grpc_answer(client, **metadata)
        own = {"fairlead-service": "ns/svc"}
        assert client.is_server_ready(headers=own)
        assert client.is_model_ready("svc", headers=own)
        assert client.get_model_metadata("svc", headers=own).name == "svc"
        assert client.get_model_config("svc", headers=own).config.name == "svc"
        for call in (client.get_model_repository_index, client.get_log_settings):
            with pytest.raises(triton.InferenceServerException):
                call(headers=own)


def test_requests_of_a_stream_choose_their_versions(pool: Pool) -> None:
    given = triton.InferInput("x", [1, 4], "FP32")
    given.set_data_from_numpy(np.ones((1, 4), "f4"))
    found: list[tuple[Any, Any]] = []
    came = threading.Event()

    def take(result: Any, error: Any) -> None:
        found.append((result, error))
        if len(found) == 3:
            came.set()

    with triton.InferenceServerClient(f"127.0.0.1:{pool.runtime.grpc}") as client:
        client.start_stream(take, headers={"fairlead-service": "ns/svc"})
        for version in ("3", "", "9"):
            client.async_stream_infer("svc", [given], model_version=version)
        assert came.wait(pools.DEADLINE_S)
        client.stop_stream()
    assert [result.get_response().model_version for result, _ in found[:2]] == ["3", "2"]
    assert "has no version '9'" in str(found[2][1])


def test_the_admin_call_loads_a_version_and_the_page_counts_it(pool: Pool) -> None:
    admin = f"http://127.0.0.1:{pool.runtime.metrics}"
    pools.write(pool.place.catalog, "ns.later", {1: pools.version(pool.folder / "3")})
    before = pool.runtime.metric("fairlead_pool_loaded_models")
    found = httpx.post(f"{admin}/v2/repository/models/ns.later@1/load", timeout=60)
    assert found.status_code == 200, found.text
    assert pool.runtime.metric("fairlead_pool_loaded_models") == before + 1
    assert pool.runtime.metric("fairlead_pool_load_duration_us_count") >= 1
    assert (
        0 < pool.runtime.metric("fairlead_pool_memory_bytes") < pool.runtime.metric("fairlead_pool_memory_limit_bytes")
    )
    assert pool.runtime.metric("nv_inference_count", model="ns.svc", version="2") > 0
    assert httpx.post(f"{admin}/v2/repository/models/ns.later@2/load").status_code == 404
    assert httpx.get(f"{admin}/v2/repository/models/ns.later@1/load").status_code == 405
    assert httpx.post(f"{admin}/v2/repository/models/ns.later@1/unload").status_code == 404
