"""The pods of a standalone clique whose gangs come from a PodGangMap (spec COH-083, COH-126, COH-210)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from reference_impl.api.pods import Pod
from reference_impl.plan import labels, pods


@dataclass(frozen=True)
class Difference:
    """Pods to delete, then pods to create: (index, gang)."""

    surplus: list[Pod] = field(default_factory=list)
    missing: list[tuple[int, str]] = field(default_factory=list)


def difference(
    counts: Mapping[str, int], found: list[Pod], target: str, may_create: Callable[[str], bool]
) -> Difference:
    """What brings the pods of a clique to its gangs. `counts` says how many pods each gang holds, `may_create` whether
    pods may be created in a gang, `target` is the template hash that pods should have. Pods never change their gang:
    they are deleted from one and created in another."""
    surplus = [pod for pod in found if pod.finished and not pod.terminating]
    active = [pod for pod in found if pod.active]
    by_gang: dict[str, list[Pod]] = {}
    for pod in active:
        by_gang.setdefault(pod.metadata.label(labels.PODGANG), []).append(pod)
    for gang, own in by_gang.items():
        if (extra := len(own) - counts.get(gang, 0)) > 0:
            surplus += sorted(own, key=lambda pod: pods.worth(pod, target))[:extra]
    wanted = [
        gang for gang, count in counts.items() if may_create(gang) for _ in range(count - len(by_gang.get(gang, ())))
    ]
    kept = [pod for pod in active if pod not in surplus]
    return Difference(surplus, list(zip(pods.free_indices(kept, len(wanted)), wanted, strict=True)))
