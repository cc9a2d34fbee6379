"""Which members of a gang are created and deleted (spec COH-209 to COH-211, COH-248)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from reference_impl.plan.coherent.layout import Entry, Key
from reference_impl.plan.coherent.observed import ObservedPod


@dataclass(frozen=True)
class Difference:
    """What makes the pods of a clique agree with its mapping. Deletions come first: there is no surge (COH-127)."""

    delete: list[str] = field(default_factory=list)
    """Names of pods."""
    create: dict[str, int] = field(default_factory=dict)
    """Gang → pods to create in it."""


def difference(mapping: Mapping[str, int], pods: Sequence[ObservedPod], refilled: Callable[[str], bool]) -> Difference:
    """Compare the mapping of a clique with its pods that are neither terminating nor finished. `refilled` returns
    whether missing pods of a gang may be created (`refills`)."""
    found: dict[str, list[ObservedPod]] = {gang: [] for gang in mapping}
    for pod in sorted(pods, key=lambda pod: (pod.rank, pod.name)):
        found.setdefault(pod.gang, []).append(pod)
    delete = [
        pod.name for gang, present in found.items() for pod in present[: max(0, len(present) - mapping.get(gang, 0))]
    ]
    missing = {gang: count - len(found[gang]) for gang, count in mapping.items() if count > len(found[gang])}
    return Difference(delete, {gang: count for gang, count in missing.items() if refilled(gang)})


def refills(entry: Entry, key: Key, current: Collection[bool], scope: Collection[Key], generation: str) -> bool:
    """Whether a missing member of a gang is created while an update is in progress.

    New members always have the present template, so a gang with members of an old one gets none: they would mix two
    versions in one gang (COH-210, COH-I04). `current` says for each member that exists in the gang whether it has the
    present template; `scope` are the components that the update changes.
    """
    if key not in scope:
        return True
    return all(current) if current else entry.generation == generation
