"""The rewriting of stored hashes in the current scheme (spec HASH-145 to HASH-154). A current hash in another scheme is
replaced with the hash that the reference writes. Nothing else in the statuses changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import msgspec

from reference_impl.api.models import (
    CliqueUpdateProgress,
    GroupUpdateProgress,
    PodCliqueSetStatus,
    PodCliqueStatus,
    ScalingGroupStatus,
)
from reference_impl.plan.hashing.window import CurrentHashes, Window
from reference_impl.plan.maps import StoredMap

Progress = TypeVar("Progress", CliqueUpdateProgress, GroupUpdateProgress)


def _rewritten_hash(current_hashes: CurrentHashes, stored: str | None) -> str | None:
    """Return the hash to store: the written hash if `stored` is a current hash in another scheme, else `stored`."""
    return current_hashes.written if current_hashes.foreign_scheme(stored) else stored


def set_status(window: Window, status: PodCliqueSetStatus) -> PodCliqueSetStatus:
    """Return the status of a set with its generation hash rewritten in the operator's scheme."""
    return msgspec.structs.replace(
        status, current_generation_hash=_rewritten_hash(window.generation, status.current_generation_hash)
    )


def group_status(window: Window, status: ScalingGroupStatus) -> ScalingGroupStatus:
    """Return the status of a scaling group with its hashes rewritten in the operator's scheme."""
    return msgspec.structs.replace(
        status,
        current_pod_clique_set_generation_hash=_rewritten_hash(
            window.generation, status.current_pod_clique_set_generation_hash
        ),
        update_progress=_rewritten_progress(window.generation, status.update_progress),
    )


def clique_status(window: Window, current_hashes: CurrentHashes, status: PodCliqueStatus) -> PodCliqueStatus:
    """Return the status of a clique with its hashes rewritten in the operator's scheme."""
    progress = _rewritten_progress(window.generation, status.update_progress)
    if progress is not None:
        progress = msgspec.structs.replace(
            progress, pod_template_hash=_rewritten_hash(current_hashes, progress.pod_template_hash) or ""
        )
    return msgspec.structs.replace(
        status,
        current_pod_clique_set_generation_hash=_rewritten_hash(
            window.generation, status.current_pod_clique_set_generation_hash
        ),
        current_pod_template_hash=_rewritten_hash(current_hashes, status.current_pod_template_hash),
        update_progress=progress,
    )


def replica_map(window: Window, stored: StoredMap) -> StoredMap:
    """Return the content of a PodGangMap rewritten in the operator's scheme: the generation hashes, and the template
    hashes that are recorded for each of them."""

    def templates(recorded: Mapping[str, str]) -> dict[str, str]:
        current_hashes = window.templates
        return {
            name: (_rewritten_hash(current_hashes[name], hash) if name in current_hashes else hash) or ""
            for name, hash in recorded.items()
        }

    return StoredMap(
        tuple(
            replace(entry, generation=_rewritten_hash(window.generation, entry.generation) or "")
            for entry in stored.layout
        ),
        {
            _rewritten_hash(window.generation, generation) or "": templates(hashes)
            for generation, hashes in stored.hashes.items()
        },
    )


def _rewritten_progress(generation: CurrentHashes, progress: Progress | None) -> Progress | None:
    """Return the progress with its generation hash rewritten, so that a running update to the current template
    continues (HASH-151)."""
    if progress is None:
        return None
    return msgspec.structs.replace(
        progress,
        pod_clique_set_generation_hash=_rewritten_hash(generation, progress.pod_clique_set_generation_hash) or "",
    )
