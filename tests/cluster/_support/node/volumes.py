"""A pod's volumes as folders of this machine, and those whose content the kubelet brings and keeps up to date."""

import base64
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from tests.cluster._support.changes import Changes

Json = dict[str, Any]
_BROUGHT = {"configMap", "secret", "projected"}


class Volumes:
    """The volumes of one pod.

    A ConfigMap, and what is projected, is a folder of links into `..data`, itself a link that is replaced whenever
    the content changed: a reader sees all of the old files or all of the new ones.
    """

    def __init__(
        self, pod: Json, client: httpx.Client, folder: Path, claims: Mapping[str, Path], files: Changes
    ) -> None:
        self._pod, self._client, self._folder, self._claims = pod, client, folder, claims
        self._volumes = {each["name"]: each for each in pod["spec"].get("volumes", ())}
        self._tokens: dict[str, tuple[float, bytes]] = {}
        self._content: dict[str, dict[str, bytes]] = {}
        self._files, self._seen, self._complete = files, -1, False
        self._turn = 0

    def folder(self, name: str) -> Path:
        """Return where a volume is here."""
        claim = self._volumes[name].get("persistentVolumeClaim")
        if claim is not None:
            return self._claims[claim["claimName"]]
        if "hostPath" in self._volumes[name]:
            return Path(self._volumes[name]["hostPath"]["path"])
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def refresh(self) -> bool:
        """Bring what is new into the volumes; returns whether all is there that a pod needs to start."""
        seen = self._files.count
        if seen != self._seen or any(due < time.monotonic() for due, _ in self._tokens.values()):
            self._complete = self._bring()
            self._seen = seen
        return self._complete

    def _bring(self) -> bool:
        for name, volume in self._volumes.items():
            if _BROUGHT & set(volume):
                found = self._found(volume)
                if found is None:
                    return False
                if self._content.get(name) != found:
                    self._put(self.folder(name), found)
                    self._content[name] = found
        return True

    def _found(self, volume: Json) -> dict[str, bytes] | None:
        """Return the files of a volume; None where something is missing that is not optional."""
        if "configMap" in volume:
            return self._config_map(volume["configMap"])
        if "secret" in volume:
            return self._secret(volume["secret"])
        files: dict[str, bytes] = {}
        for source in volume["projected"]["sources"]:
            if "serviceAccountToken" in source:
                wanted = source["serviceAccountToken"]
                files[wanted["path"]] = self._token(wanted.get("audience", ""), wanted["expirationSeconds"])
            elif "downwardAPI" in source:  # of which the API server's own volume asks for one
                (item,) = source["downwardAPI"]["items"]
                assert item["fieldRef"]["fieldPath"] == "metadata.namespace"
                files[item["path"]] = self._pod["metadata"]["namespace"].encode()
            else:
                found = self._config_map(source["configMap"])
                if found is None:
                    return None
                files |= found
        return files

    def _config_map(self, source: Json) -> dict[str, bytes] | None:
        namespace = self._pod["metadata"]["namespace"]
        answer = self._client.get(f"/api/v1/namespaces/{namespace}/configmaps/{source['name']}")
        if answer.status_code == 404:
            return {} if source.get("optional", False) else None
        found = answer.raise_for_status().json()
        values = {name: text.encode() for name, text in found.get("data", {}).items()}
        values |= {name: base64.b64decode(text) for name, text in found.get("binaryData", {}).items()}
        return self._chosen(source, values)

    def _secret(self, source: Json) -> dict[str, bytes] | None:
        namespace = self._pod["metadata"]["namespace"]
        answer = self._client.get(f"/api/v1/namespaces/{namespace}/secrets/{source['secretName']}")
        if answer.status_code == 404:
            return {} if source.get("optional", False) else None
        found = answer.raise_for_status().json()
        return self._chosen(source, {name: base64.b64decode(text) for name, text in found.get("data", {}).items()})

    def _chosen(self, source: Json, values: dict[str, bytes]) -> dict[str, bytes] | None:
        """Return the files that a source makes of an object's values; None where one is missing that it asks for."""
        optional = source.get("optional", False)
        items = source.get("items", [{"key": name, "path": name} for name in values])
        if not optional and any(item["key"] not in values for item in items):
            return None
        return {item["path"]: values[item["key"]] for item in items if item["key"] in values}

    def _token(self, audience: str, lifetime_s: int) -> bytes:
        """Return a token of the pod's service account that ends with the pod, a new one in good time."""
        due, token = self._tokens.get(audience, (0.0, b""))
        if time.monotonic() < due:
            return token
        metadata, account = self._pod["metadata"], self._pod["spec"]["serviceAccountName"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
        spec = {"expirationSeconds": lifetime_s, "boundObjectRef": owner}
        if audience:
            spec["audiences"] = [audience]
        path = f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token"
        made = self._client.post(path, json={"spec": spec}).raise_for_status().json()
        token = made["status"]["token"].encode()
        self._tokens[audience] = (time.monotonic() + 0.8 * lifetime_s, token)
        return token

    def _put(self, folder: Path, files: Mapping[str, bytes]) -> None:
        self._turn += 1
        data = folder / f"..{self._turn}"
        data.mkdir()
        for path, content in files.items():
            (data / path).write_bytes(content)
        link = folder / "..data_tmp"
        link.symlink_to(data.name)
        link.replace(folder / "..data")
        for path in files:
            if not (folder / path).is_symlink():
                (folder / path).symlink_to(Path("..data") / path)
        for each in folder.iterdir():
            if not each.name.startswith("..") and each.name not in files:
                each.unlink()
