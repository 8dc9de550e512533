"""Which variables of a service file a process gets."""

from pathlib import Path

import pytest

from integrations.clusters.base.environment import OWN_PREFIX, PERMITTED, permitted, refused, why_refused


@pytest.mark.parametrize(
    ("name", "for_a_model", "for_code"),
    [
        pytest.param("OMP_NUM_THREADS", True, True, id="threads"),
        pytest.param("MKL_NUM_THREADS", True, True, id="threads of MKL"),
        pytest.param("TZ", True, True, id="the time zone"),
        pytest.param("LC_ALL", True, True, id="the language"),
        pytest.param("MODEL_THRESHOLD", True, True, id="an own backend's"),
        pytest.param("THRESHOLD", False, True, id="a name of the author's"),
        pytest.param("AWS_SECRET_ACCESS_KEY", False, True, id="credentials"),
        pytest.param("HF_HOME", False, True, id="a library's folder"),
        pytest.param("HTTPS_PROXY", False, True, id="a proxy"),
        pytest.param("SSL_CERT_FILE", False, True, id="authorities"),
        pytest.param("ORT_LOAD_CONFIG_FROM_MODEL", False, True, id="configuration out of the model"),
        pytest.param("NUMBA_CACHE_DIR", False, True, id="where compiled code is kept"),
        pytest.param("OV_FRONTEND_PATH", False, True, id="plugins of OpenVINO"),
        pytest.param("PYTHONPATH", False, False, id="what Python imports"),
        pytest.param("PYTHONHOME", False, False, id="Python's own modules"),
        pytest.param("PYTHONUSERBASE", False, False, id="the user's modules"),
        pytest.param("LD_PRELOAD", False, False, id="libraries before others"),
        pytest.param("LD_AUDIT", False, False, id="libraries that watch the loader"),
        pytest.param("DYLD_INSERT_LIBRARIES", False, False, id="the same on macOS"),
        pytest.param("GCONV_PATH", False, False, id="modules of glibc"),
        pytest.param("GLIBC_TUNABLES", False, False, id="tunables"),
        pytest.param("MALLOC_CHECK_", False, False, id="the allocator"),
        pytest.param("OPENSSL_CONF", False, False, id="modules of OpenSSL"),
        pytest.param("OMP_TOOL_LIBRARIES", False, False, id="tools of OpenMP"),
        pytest.param("NVIDIA_TF32_OVERRIDE", True, True, id="how GPUs compute"),
        pytest.param("CUDA_INJECTION64_PATH", False, False, id="a library in CUDA"),
        pytest.param("NVIDIA_VISIBLE_DEVICES", False, False, id="devices of others"),
        pytest.param("BASH_ENV", False, False, id="a script of shells"),
        pytest.param("PATH", False, False, id="where programs are"),
        pytest.param("HOME", False, False, id="where libraries look"),
        pytest.param("FAIRLEAD_SECRET_KEY", False, False, id="the platform's"),
    ],
)
def test_who_gets_a_variable(name: str, for_a_model: bool, for_code: bool) -> None:
    assert (not why_refused(name, is_code=False), not why_refused(name, is_code=True)) == (for_a_model, for_code)


def test_the_others_are_left_out_in_order() -> None:
    env = {"TZ": "UTC", "PYTHONPATH": "/x", "LD_PRELOAD": "/y", "OWN": "1"}
    assert refused(env, is_code=False) == ["LD_PRELOAD", "OWN", "PYTHONPATH"]
    assert permitted(env, is_code=False) == {"TZ": "UTC"}
    assert permitted(env, is_code=True) == {"TZ": "UTC", "OWN": "1"}


def test_a_name_is_what_it_is_in_upper_case() -> None:
    assert why_refused("model_x", is_code=False)
    assert not why_refused("pythonpath", is_code=True)


def test_the_page_about_service_files_lists_what_a_model_without_code_may_set() -> None:
    page = (Path(__file__).parents[4] / "docs" / "reference" / "rollouts.md").read_text()
    assert [each for each in sorted({*PERMITTED, OWN_PREFIX}) if f"`{each}`" not in page] == []
