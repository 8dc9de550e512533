"""Client code for a request: a `curl` command, Python with httpx, and with tritonclient. Pure."""

import json
import pprint
import shlex
from dataclasses import dataclass
from urllib.parse import urlsplit

from deployments.web.services.example_request import KEY_VARIABLE
from deployments.web.try_page.form import Request

FILE = "request.json"
_MOST_CHARACTERS = 4000
_HEADERS = '{"Authorization": "Bearer " + os.environ["' + KEY_VARIABLE + '"]}'


@dataclass(frozen=True, slots=True)
class Code:
    """Three ways to send the same request.

    Attributes:
        reads_file: whether they read it from `FILE`, since it is too long to include.
    """

    curl: str
    python: str
    triton: str
    reads_file: bool


def code_of(
    request: Request, *, url: str, model: str, version: int, is_guarded: bool = False, authority: str = ""
) -> Code:
    """Return the code.

    Args:
        url: the model's address, `http://HOST/PATH/v2/models/MODEL`.
        model: its served name.
        is_guarded: callers need a key, which the code takes from the environment.
        authority: file with the authority that signed the gateway's certificate; empty for one that clients know.
    """
    text = json.dumps(request, ensure_ascii=False)
    reads_file = len(text) > _MOST_CHARACTERS
    literal = f'json.load(open("{FILE}", encoding="utf-8"))' if reads_file else _literal(request)
    target = f"{url}/versions/{version}/infer"
    body = f"@{FILE}" if reads_file else text
    trust = f" --cacert {shlex.quote(authority)}" if authority else ""
    key = f'  --header "Authorization: Bearer ${KEY_VARIABLE}" \\\n' if is_guarded else ""
    return Code(
        curl=f"curl{trust} {shlex.quote(target)} \\\n{key}  --header 'Content-Type: application/json' \\\n"
        f"  --data-binary {shlex.quote(body)}",
        python=_python(target, literal, reads_file=reads_file, is_guarded=is_guarded, authority=authority),
        triton=_triton(
            url,
            literal,
            model=model,
            version=version,
            reads_file=reads_file,
            is_guarded=is_guarded,
            authority=authority,
        ),
        reads_file=reads_file,
    )


def _python(target: str, literal: str, *, reads_file: bool, is_guarded: bool, authority: str) -> str:
    more = f", headers={_HEADERS}" if is_guarded else ""
    if authority:
        more += f", verify=ssl.create_default_context(cafile={_quoted(authority)})"
    return f"""{_imports(reads_file=reads_file, is_guarded=is_guarded, checks=bool(authority))}import httpx

request = {literal}
answer = httpx.post({_quoted(target)}, json=request, timeout=60{more})
answer.raise_for_status()
for output in answer.json()["outputs"]:
    print(output["name"], output["shape"], output["data"])
"""


def _triton(
    url: str, literal: str, *, model: str, version: int, reads_file: bool, is_guarded: bool, authority: str
) -> str:
    parts = urlsplit(url)
    base = f"{parts.netloc}{parts.path.removesuffix(f'/v2/models/{model}')}"
    secure = ", ssl=True" if parts.scheme == "https" else ""
    if authority:
        secure += f', ssl_options={{"ca_certs": {_quoted(authority)}}}'
    headers = f", headers={_HEADERS}" if is_guarded else ""
    return f"""{_imports(reads_file=reads_file, is_guarded=is_guarded)}import numpy as np
import tritonclient.http as triton
from tritonclient.utils import triton_to_np_dtype

request = {literal}
inputs = []
for each in request["inputs"]:
    values = np.array(each["data"], triton_to_np_dtype(each["datatype"])).reshape(each["shape"])
    tensor = triton.InferInput(each["name"], each["shape"], each["datatype"])
    inputs.append(tensor.set_data_from_numpy(values))
client = triton.InferenceServerClient({_quoted(base)}{secure})
answer = client.infer({_quoted(model)}, inputs, model_version="{version}"{headers})
for output in answer.get_response()["outputs"]:
    print(output["name"], answer.as_numpy(output["name"]))
"""


def _imports(*, reads_file: bool, is_guarded: bool, checks: bool = False) -> str:
    """Return the imports of the standard library that the code needs, with the line after them."""
    names = ["json"] * reads_file + ["os"] * is_guarded + ["ssl"] * checks
    return "".join(f"import {name}\n" for name in names) + "\n" * bool(names)


def _literal(request: Request) -> str:
    return pprint.pformat(request, width=100, sort_dicts=False, compact=True)


def _quoted(text: str) -> str:
    return json.dumps(text)
