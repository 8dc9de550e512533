"""Model config check by the serving runtime: `python -I -m serving_runtime check-config`.

No model is loaded, the check takes a fraction of a second, and the same fields are checked once per process.
"""

import json
import subprocess
from collections.abc import Mapping
from functools import lru_cache

from common.errors import InvalidInput, Unavailable
from integrations.clusters.local.model_config import rewrite
from integrations.clusters.local.runtime import RUNTIME, environment

_SCHEMA = "fairlead.check-config/v1"
_TIMEOUT_S = 10.0


def check_config(
    fields: Mapping[str, object],
    *,
    runtime: tuple[str, ...] = RUNTIME,
    timeout_s: float = _TIMEOUT_S,
) -> None:
    """Raise InvalidInput, its `field` dotted, where no model could be served with `fields` over its config.pbtxt.

    Raises:
        InvalidInput: a field is not known, has a value of a wrong type, or is not supported.
        Unavailable: the runtime did not answer.
    """
    field, error = _asked(rewrite("", name="model", fields=fields), runtime, timeout_s)
    if error:
        raise InvalidInput(error, field=field)


@lru_cache(maxsize=256)
def _asked(text: str, runtime: tuple[str, ...], timeout_s: float) -> tuple[str, str]:
    """Return the field at fault and what is wrong with it; both empty where nothing is."""
    try:
        done = subprocess.run(
            [*runtime, "check-config", "--json"],
            input=text.encode(),
            capture_output=True,
            timeout=timeout_s,
            check=False,
            env=environment({}, is_code=False),
        )
        answer = json.loads(done.stdout)
        if answer["schema"] == _SCHEMA and done.returncode in (0, 2):
            return ("", "") if done.returncode == 0 else (str(answer["field"]), str(answer["error"]))
        problem = f"its answer is of the schema {answer['schema']!r}, exit code {done.returncode}"
    except subprocess.TimeoutExpired:
        problem = f"no answer within {timeout_s:g} s"
    except OSError as error:
        problem = str(error)
    except (ValueError, KeyError, TypeError):
        problem = f"exit code {done.returncode}: {done.stderr[-300:].decode(errors='replace').strip()}"
    raise Unavailable(f"the serving runtime could not be asked about the model's config ({problem}); try again")
