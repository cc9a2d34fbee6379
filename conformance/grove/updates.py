"""Reading how far an update has come (api.md API-048 to API-051, API-082 to API-084, API-094)."""

from __future__ import annotations

from conformance.grove.fields import Document, at, count, items, number, text

COUNTERS = (
    ("updatedPodCliquesCount", "totalPodCliquesCount"),
    ("updatedPodCliqueScalingGroupsCount", "totalPodCliqueScalingGroupsCount"),
)


def progress(found: Document | None) -> Document:
    """`status.updateProgress`, or what earlier versions called so; an empty mapping where there is none."""
    for field in ("updateProgress", "rollingUpdateProgress"):
        value = at(found, "status", field)
        if isinstance(value, dict):
            return value
    return {}


def started(found: Document | None) -> str:
    return text(progress(found), "updateStartedAt")


def ended(found: Document | None, generation: str = "") -> bool:
    """Return whether an update has begun and ended; with `generation`, the one to that generation of the set."""
    if generation and text(progress(found), "podCliqueSetGenerationHash") != generation:
        return False
    return started(found) != "" and text(progress(found), "updateEndedAt") != ""


def running(found: Document | None) -> bool:
    return started(found) != "" and not ended(found)


def turns(found: Document | None) -> list[int | None]:
    """The replicas of a set that are being updated. An entry that has ended is only about to go (CHG-RU-15)."""
    single = at(progress(found), "currentlyUpdating")  # an object in earlier versions
    entries = [single] if isinstance(single, dict) else items(progress(found), "currentlyUpdating")
    return [number(entry, "replicaIndex") for entry in entries if not text(entry, "updateEndedAt")]


def counts(found: Document | None) -> dict[str, int]:
    """All counters of a set's progress; zeros are left out in JSON."""
    return {field: count(progress(found), field) for pair in COUNTERS for field in pair}


def generation(found: Document | None) -> str:
    """The generation hash that a set has."""
    return text(found, "status", "currentGenerationHash")


def selected(clique: Document | None) -> str:
    """The Ready pod of a clique whose turn it is, empty where there is none."""
    return text(progress(clique), "readyPodsSelectedToUpdate", "current")


def selected_replica(group: Document | None) -> int | None:
    return number(progress(group), "readyReplicaIndicesSelectedToUpdate", "current")


def selection(part: Document | None) -> str | int | None:
    """What a clique or a scaling group says to have its turn. What it lists as completed is history."""
    replica = selected_replica(part)
    return selected(part) or (replica if replica is not None and replica >= 0 else None)


def targets(part: Document | None) -> dict[str, str]:
    """The hashes that the progress of a clique or a scaling group leads to, by the name of the status field that says
    that they are reached."""
    fields = {
        "podCliqueSetGenerationHash": "currentPodCliqueSetGenerationHash",
        "podTemplateHash": "currentPodTemplateHash",
    }
    return {reached: value for field, reached in fields.items() if (value := text(progress(part), field))}


def reached(part: Document | None) -> dict[str, str]:
    """The hashes of the revision that a clique or a scaling group has reached."""
    return {
        field: value
        for field in ("currentPodCliqueSetGenerationHash", "currentPodTemplateHash")
        if (value := text(part, "status", field))
    }
