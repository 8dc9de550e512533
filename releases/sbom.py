"""Bills of materials of a release, in CycloneDX 1.6: of the wheel what it requires, of an image what its lock pins.

An image has a further one inside, with the licences and Debian's packages (`docker/sbom.py`). Serial numbers are
derived from what a bill describes, and times are those of the commit, so that equal releases have equal bills.
"""

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from releases.errors import ReleaseError

SUFFIX = ".cdx.json"
_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)", re.MULTILINE)
Json = dict[str, Any]


def of_wheel(name: str, version: str, sha256: str, required: Iterable[str], made_s: int) -> str:
    """Return the bill of a wheel; it requires ranges of versions, which are properties of the components.

    Args:
        name: the wheel's file name.
        required: as in its metadata, such as `httpx>=0.28`.
    """
    subject = {
        **_package("fairlead", version),
        "type": "application",
        "hashes": [{"alg": "SHA-256", "content": sha256}],
        "licenses": [{"license": {"id": "Apache-2.0"}}],
        "properties": [{"name": "fairlead:file", "value": name}],
    }
    wanted = [Requirement(each) for each in required]
    components = [
        {**_package(each.name, ""), "properties": [{"name": "fairlead:requires", "value": str(each)}]}
        for each in wanted
    ]
    return bill(subject, components, made_s)


def of_image(reference: str, digest: str, lock: str, made_s: int) -> str:
    """Return the bill of an image's Python packages.

    Args:
        digest: `sha256:…`, or empty where it is not known.
        lock: the text of its file in `requirements/images/`.
    """
    repository, _, tag = reference.rpartition(":")
    subject: Json = {"type": "container", "name": repository, "version": tag, "bom-ref": reference}
    if digest:
        subject["hashes"] = [{"alg": "SHA-256", "content": digest.removeprefix("sha256:")}]
    return bill(subject, [_package(name, version) for name, version in sorted(pins(lock).items())], made_s)


def pins(lock: str) -> Mapping[str, str]:
    """Return the versions that a lock pins, by the package's canonical name."""
    return {canonicalize_name(name): version for name, version in _PIN.findall(lock)}


def bill(subject: Json, components: list[Json], made_s: int) -> str:
    """Return a bill of materials, which is valid."""
    described = json.dumps([subject, components], sort_keys=True)
    made = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, described)}",
        "version": 1,
        "metadata": {"timestamp": datetime.fromtimestamp(made_s, UTC).isoformat(), "component": subject},
        "components": components,
        "dependencies": [
            {"ref": subject["bom-ref"], "dependsOn": sorted(each["bom-ref"] for each in components)},
            *({"ref": each["bom-ref"]} for each in components),
        ],
    }
    text = json.dumps(made, indent=1, sort_keys=True) + "\n"
    if fault := fault_of(text):
        raise ReleaseError(f"the bill of materials of {subject['name']} is not CycloneDX 1.6: {fault}")
    return text


def fault_of(text: str) -> str:
    """Return why a text is no bill of CycloneDX 1.6, in one line; empty where it is."""
    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    return "" if fault is None else " ".join(str(fault).split())[:200]


def _package(name: str, version: str) -> Json:
    canonical = canonicalize_name(name)
    purl = PackageURL("pypi", None, canonical, version or None).to_string()
    made: Json = {"type": "library", "name": canonical, "purl": purl, "bom-ref": purl}
    return {**made, "version": version} if version else made
