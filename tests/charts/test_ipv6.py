"""Web as the chart starts it, in a pod whose addresses are of IPv6 alone."""

import os
import sys
from pathlib import Path
from typing import Any

from tests._support.only_ipv6 import POD_IP, answers
from tests.charts.chart import BASE, ROOT, objects, values

_FROM_THE_POD = ("FAIRLEAD_ALLOWED_HOSTS", "FAIRLEAD_WEB_METRICS_ADDRESS")


def _web() -> dict[str, Any]:
    found = next(each for each in objects(values(BASE)) if each["metadata"]["name"] == "fairlead-web")
    container: dict[str, Any] = found["spec"]["template"]["spec"]["containers"][0]
    return container


def test_web_and_its_metrics_answer_at_an_address_of_ipv6(tmp_path: Path) -> None:
    web = _web()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FAIRLEAD_")}
    environment |= {
        each["name"]: each["value"].replace("$(POD_IP)", POD_IP) for each in web["env"] if each["name"] in _FROM_THE_POD
    }
    environment |= {
        "DJANGO_SETTINGS_MODULE": "fairlead.settings",
        "PYTHONPATH": os.pathsep.join((str(ROOT / "platform"), str(ROOT))),
        "FAIRLEAD_HOME": str(tmp_path),
        "FAIRLEAD_SECRET_KEY": "of-this-test" * 5,
    }
    urls = [
        f"http://[{POD_IP}]:8080/healthz",  # a probe of the kubelet
        "http://[::1]:8080/healthz",  # a host that is not allowed
        f"http://[{POD_IP}]:8082/metrics",
    ]
    live, foreign, metrics = answers(urls, [sys.executable, *web["command"][1:]], environment).values()
    assert live == (200, '{"live": true}')
    assert foreign[0] == 400
    assert metrics[0] == 200
    assert "fairlead_database_up" in metrics[1]
