"""Writes an image's bill of materials, `FOLDER/sbom.cdx.json` (CycloneDX 1.6): the Python packages of the virtual
environment FOLDER, read by cyclonedx-bom, and the Debian packages that `PACKAGES` (a copy of /var/lib/dpkg) tells of.

Usage: sbom.py FOLDER PACKAGES NAME
"""

import json
import subprocess
import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL


def main(folder: Path, packages: Path, name: str) -> int:
    """Write the file; raises SystemExit where what was written is not CycloneDX."""
    cyclonedx = [Path(sys.executable).with_name("cyclonedx-py"), "environment", "--output-reproducible"]
    cyclonedx += ["--spec-version", "1.6", folder / "bin" / "python"]
    bill = json.loads(subprocess.run(cyclonedx, check=True, capture_output=True).stdout)
    bill.setdefault("metadata", {})["component"] = {"type": "container", "name": f"fairlead-{name}", "bom-ref": name}
    bill["components"] += debian_components(packages)
    text = json.dumps(bill, indent=1, sort_keys=True)
    if fault := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise SystemExit(f"the bill of materials of {name} is not CycloneDX 1.6: {fault}")
    (folder / "sbom.cdx.json").write_text(text + "\n")
    return 0


def debian_components(packages: Path) -> list[dict[str, str]]:
    """Return a component for each Debian package that is installed."""
    query = [
        "dpkg-query",
        f"--admindir={packages}",
        "--show",
        "--showformat",
        "${Package}\t${Version}\t${Architecture}\n",
    ]
    lines = subprocess.run(query, check=True, capture_output=True, text=True).stdout.splitlines()
    found = []
    for line in lines:
        package, version, architecture = line.split("\t")
        purl = PackageURL("deb", "debian", package, version, {"arch": architecture}).to_string()
        found.append({"type": "library", "name": package, "version": version, "purl": purl, "bom-ref": purl})
    return found


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
