"""Read the progress of an update (api.md API-048 to API-051, API-082 to API-084, API-094)."""

from __future__ import annotations

from conformance.grove.fields import Document, at, count, items, number, text

COUNTERS = (
    ("updatedPodCliquesCount", "totalPodCliquesCount"),
    ("updatedPodCliqueScalingGroupsCount", "totalPodCliqueScalingGroupsCount"),
)


def progress(document: Document | None) -> Document:
    """Return `status.updateProgress`, or the corresponding field of earlier versions; an empty mapping if there is
    none."""
    for field in ("updateProgress", "rollingUpdateProgress"):
        value = at(document, "status", field)
        if isinstance(value, dict):
            return value
    return {}


def start_time(document: Document | None) -> str:
    """Return the start time of the update; empty if there is none."""
    return text(progress(document), "updateStartedAt")


def has_ended(document: Document | None, generation_hash: str = "") -> bool:
    """Return whether an update has started and ended. If `generation_hash` is given, only an update to that generation
    of the set counts."""
    if generation_hash and text(progress(document), "podCliqueSetGenerationHash") != generation_hash:
        return False
    return start_time(document) != "" and text(progress(document), "updateEndedAt") != ""


def is_running(document: Document | None) -> bool:
    """Return whether an update has started and not ended."""
    return start_time(document) != "" and not has_ended(document)


def updating_replicas(document: Document | None) -> list[int | None]:
    """Return the replicas of a set that are being updated. Entries that have ended are left out (CHG-RU-15)."""
    single_entry = at(progress(document), "currentlyUpdating")  # an object in earlier versions
    entries = [single_entry] if isinstance(single_entry, dict) else items(progress(document), "currentlyUpdating")
    return [number(entry, "replicaIndex") for entry in entries if not text(entry, "updateEndedAt")]


def counts(document: Document | None) -> dict[str, int]:
    """Return all counters of a set's progress. JSON omits zeros, so missing counters are 0."""
    return {field: count(progress(document), field) for pair in COUNTERS for field in pair}


def generation_hash(document: Document | None) -> str:
    """Return the generation hash of a set."""
    return text(document, "status", "currentGenerationHash")


def selected_pod(clique: Document | None) -> str:
    """Return the Ready pod of a clique that is selected for replacement; empty if there is none."""
    return text(progress(clique), "readyPodsSelectedToUpdate", "current")


def selected_replica(group: Document | None) -> int | None:
    """Return the replica of a scaling group that is selected for replacement; None if there is none."""
    return number(progress(group), "readyReplicaIndicesSelectedToUpdate", "current")


def selection(part: Document | None) -> str | int | None:
    """Return the pod or replica that a clique or scaling group has selected. Completed entries do not count."""
    replica = selected_replica(part)
    return selected_pod(part) or (replica if replica is not None and replica >= 0 else None)


def listed_selections(part: Document | None) -> set[str | int]:
    """Return the pods of a clique, or the replicas of a scaling group, that its progress lists as selected for
    replacement, currently or earlier."""
    selections: list[object] = []
    for field in ("readyPodsSelectedToUpdate", "readyReplicaIndicesSelectedToUpdate"):
        completed = at(progress(part), field, "completed")
        selections += [at(progress(part), field, "current"), *(completed if isinstance(completed, list) else ())]
    return {selection for selection in selections if isinstance(selection, str | int)}


def target_hashes(part: Document | None) -> dict[str, str]:
    """Return the target hashes of the update of a clique or scaling group, by the status field that reports the hash
    once it is reached."""
    fields = {
        "podCliqueSetGenerationHash": "currentPodCliqueSetGenerationHash",
        "podTemplateHash": "currentPodTemplateHash",
    }
    return {status_field: value for field, status_field in fields.items() if (value := text(progress(part), field))}


def reached_hashes(part: Document | None) -> dict[str, str]:
    """Return the hashes of the revision that a clique or scaling group has reached."""
    return {
        field: value
        for field in ("currentPodCliqueSetGenerationHash", "currentPodTemplateHash")
        if (value := text(part, "status", field))
    }
