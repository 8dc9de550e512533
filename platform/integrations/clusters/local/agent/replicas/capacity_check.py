"""Capacity check: whether one replica fits on this machine. Resources are requests, as on Kubernetes, not limits."""

import os

from integrations.clusters.base import Resources

_GIB = 1 << 30


def machine() -> Resources:
    """Return the resources of this machine."""
    return Resources(
        cpu_cores=float(os.cpu_count() or 1), memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    )


def lack(asked: Resources, has: Resources) -> str:
    """Return why a replica can never fit, as a part of a sentence; empty where it fits."""
    if asked.cpu_cores and has.cpu_cores and asked.cpu_cores > has.cpu_cores:
        return f"asks for {asked.cpu_cores:g} CPU cores where this machine has {has.cpu_cores:g}"
    if asked.memory_bytes and has.memory_bytes and asked.memory_bytes > has.memory_bytes:
        wanted, there = asked.memory_bytes / _GIB, has.memory_bytes / _GIB
        return f"asks for {wanted:.1f} GiB of memory where this machine has {there:.1f} GiB"
    return f"asks for {asked.accelerator}, which this machine does not offer" if asked.accelerator else ""
