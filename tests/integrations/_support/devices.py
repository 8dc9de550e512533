"""ResourceSlices and DeviceClasses in the shape that NVIDIA's DRA driver for GPUs gives them, and claims of devices."""

from typing import Any

DRIVER = "gpu.nvidia.com"
_SLICES = 8
_PROFILES = {
    # profile: its number, multiprocessors, engines, MiB, size and places in memory slices
    "1g.10gb": (19, 16, 1, 9984, 1, range(7)),
    "3g.40gb": (9, 60, 3, 40448, 4, (0, 4)),
    "1g.10gb+me": (20, 16, 1, 9984, 1, range(7)),
}
_WHOLE = (132, 7, 81559)


def classes() -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": f"{kind}.nvidia.com"},
            "spec": {
                "selectors": [
                    {
                        "cel": {
                            "expression": f"device.driver == '{DRIVER}' && "
                            f"device.attributes['{DRIVER}'].type == '{kind}'"
                        }
                    }
                ]
            },
        }
        for kind in ("gpu", "mig")
    ]


def whole(node: str, count: int, product: str = "NVIDIA A30", mib: int = 24576, **more: Any) -> list[dict[str, Any]]:
    """GPUs that are not cut, in one slice; `more` of each device."""
    capacity = {"memory": {"value": f"{mib}Mi"}}
    devices = [
        {"name": f"gpu-{at}", "attributes": _gpu(node, at, product), "capacity": capacity, **more}
        for at in range(count)
    ]
    return [_slice(node, "devices", 1, devices=devices)]


def cut_ahead(node: str, profiles: list[str], product: str = "NVIDIA H100 80GB HBM3") -> list[dict[str, Any]]:
    """Slices of one GPU that an administrator made; the GPU itself is not published."""
    devices = [
        {"name": f"gpu-0-mig-{at}", "attributes": _mig(node, 0, profile, product)}
        for at, profile in enumerate(profiles)
    ]
    return [_slice(node, "devices", 1, devices=devices)]


def cut_by_claims(
    node: str, count: int, product: str = "NVIDIA H100 80GB HBM3", profiles: tuple[str, ...] = ("1g.10gb", "3g.40gb")
) -> list[dict[str, Any]]:
    """GPUs with all slices that they could have; counters and devices are in slices of their own."""
    everything = _counted(*_WHOLE) | _places(0, _SLICES)
    sets = [{"name": f"gpu-{at}-counter-set", "counters": everything} for at in range(count)]
    devices = []
    for at in range(count):
        name = f"gpu-{at}"
        devices.append(_device(name, at, _gpu(node, at, product), _WHOLE, everything))
        for profile in profiles:
            number, *amounts, size, places = _PROFILES[profile]
            plain = profile.replace(".", "").replace("+", "-")
            for start in places:
                consumed = _counted(*amounts) | _places(start, size)
                own = f"{name}-mig-{plain}-{number}-{start}"
                devices.append(_device(own, at, _mig(node, at, profile, product), tuple(amounts), consumed))
    return [_slice(node, "counters", 2, sharedCounters=sets), _slice(node, "devices", 2, devices=devices)]


def claim(name: str, pod: str, *devices: str, node: str, **result: Any) -> dict[str, Any]:
    """A claim of the namespace `default` with these devices of a node, which is reserved for a pod."""
    found = [{"request": "gpu", "driver": DRIVER, "pool": node, "device": each, **result} for each in devices]
    reserved = [{"resource": "pods", "name": pod, "uid": "1"}] if pod else []
    status = {"allocation": {"devices": {"results": found}}, "reservedFor": reserved}
    return {"metadata": {"namespace": "default", "name": name}, "status": status}


def _slice(node: str, name: str, count: int, **spec: Any) -> dict[str, Any]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": count}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{DRIVER}-{name}"},
        "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, **spec},
    }


def _device(
    name: str, at: int, attributes: dict[str, Any], amounts: tuple[Any, ...], consumed: dict[str, Any]
) -> dict[str, Any]:
    processors, engines, mib = amounts
    capacity = {"multiprocessors": str(processors), "copyEngines": str(engines), "memory": f"{mib}Mi"}
    return {
        "name": name,
        "attributes": attributes,
        "capacity": {name: {"value": value} for name, value in capacity.items()},
        "consumesCounters": [{"counterSet": f"gpu-{at}-counter-set", "counters": consumed}],
    }


def _counted(processors: int, engines: int, mib: int) -> dict[str, Any]:
    counted = {"multiprocessors": str(processors), "copy-engines": str(engines), "memory": f"{mib}Mi"}
    return {name: {"value": value} for name, value in counted.items()}


def _places(start: int, size: int) -> dict[str, Any]:
    return {f"memory-slice-{at}": {"value": "1"} for at in range(start, start + size)}


def _gpu(node: str, at: int, product: str) -> dict[str, Any]:
    return _texts(type="gpu", uuid=f"GPU-{node}-{at}", productName=product, architecture="Hopper")


def _mig(node: str, at: int, profile: str, product: str) -> dict[str, Any]:
    return _texts(type="mig", parentUUID=f"GPU-{node}-{at}", profile=profile, productName=product)


def _texts(**values: str) -> dict[str, Any]:
    return {name: {"string": value} for name, value in values.items()}
