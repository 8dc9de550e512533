"""Status of an object by the rules that kstatus documents for kinds that it does not know.

In this order: a generation that was not observed is in progress; then the first of the conditions Reconciling and
Stalled that is True decides; then Ready; an object without any of them is current.
"""

from typing import Any


def kstatus(item: dict[str, Any]) -> tuple[str, str]:
    """Return InProgress, Failed, Current or Terminating, and the message."""
    if "deletionTimestamp" in item["metadata"]:
        return "Terminating", ""
    status = item.get("status", {})
    if status.get("observedGeneration", item["metadata"]["generation"]) != item["metadata"]["generation"]:
        return "InProgress", ""
    conditions = status.get("conditions", ())
    for each in conditions:
        if each["type"] in ("Reconciling", "Stalled") and each["status"] == "True":
            return ("InProgress" if each["type"] == "Reconciling" else "Failed"), each["message"]
    for each in conditions:
        if each["type"] == "Ready":
            return ("Current" if each["status"] == "True" else "InProgress"), each["message"]
    return "Current", ""
