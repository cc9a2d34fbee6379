"""The desired state of the set `kept`, and changes to the desired state."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conformance.grove import labels, workloads

SET, CLIQUE, GROUP = "kept", "kept-0-a", "kept-0-g"
VALUES = {"groupsMinAvailable": 1, "aloneMinAvailable": 1, "members": 1, "membersMinAvailable": 1}
CLIQUES = ("a", "b", "c")
"""The cliques of the set: `a` is standalone, `b` and `c` belong to the scaling group `g`."""


@dataclass(frozen=True)
class DesiredState:
    """The desired state: the replicas of the set, the pods of its clique `a`, the replicas of its group `g`, and the
    image versions of `a`, `b` and `c`. `pods` and `groups` apply to replica 0 of the set; other replicas follow the
    template."""

    replicas: int = 1
    pods: int = 2
    groups: int = 2
    images: tuple[int, ...] = (1, 1, 1)


TEMPLATE = DesiredState()
"""The state in the template."""


@dataclass(frozen=True)
class SetChange:
    """One change. `what` is scale-set, scale-clique, scale-group, image (of the clique `part`), recreate, lose-pod (of
    the clique `part`) or restart (of the operator). `rests`: the next change is made only when this change has had its
    effect."""

    what: str
    part: str = ""
    value: int = 0
    rests: bool = True

    def __str__(self) -> str:
        text = " ".join(filter(None, (self.what, self.part, str(self.value or ""))))
        return text if self.rests else f"{text} (at once)"


def apply_change(desired: DesiredState, change: SetChange) -> DesiredState:
    """Return the desired state after a change."""
    match change.what:
        case "scale-set":
            return replace(desired, replicas=change.value)
        case "scale-clique":
            return replace(desired, pods=change.value)
        case "scale-group":
            return replace(desired, groups=change.value)
        case "image":
            index = CLIQUES.index(change.part)
            return replace(desired, images=(*desired.images[:index], change.value, *desired.images[index + 1 :]))
        case "recreate":
            return replace(desired, pods=TEMPLATE.pods, groups=TEMPLATE.groups)
    return desired


def apply_changes(changes: Iterable[SetChange]) -> DesiredState:
    """Return the desired state after all changes."""
    desired = TEMPLATE
    for change in changes:
        desired = apply_change(desired, change)
    return desired


def direct_changes(desired: DesiredState) -> list[SetChange]:
    """Return the changes that lead to a state from a set that was created with the state's images and replicas."""
    sizes = [SetChange("scale-clique", value=desired.pods), SetChange("scale-group", value=desired.groups)]
    template_sizes = (TEMPLATE.pods, TEMPLATE.groups)
    return [change for change, size in zip(sizes, template_sizes, strict=True) if change.value != size]


def manifest(desired: DesiredState) -> dict[str, Any]:
    """Return the set with the desired images and replicas."""
    document = workloads.load("kept", {**VALUES, "setName": SET, "replicas": desired.replicas})
    document["spec"]["template"]["cliques"] = cliques(desired, document["spec"]["template"]["cliques"])
    return document


def cliques(desired: DesiredState, stored: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the cliques of a template with the desired images."""
    new_cliques = json.loads(json.dumps(list(stored)))
    for clique in new_cliques:
        version = desired.images[CLIQUES.index(clique["name"])]
        clique["spec"]["podSpec"]["containers"][0]["image"] = image(clique["name"], version)
    return list(new_cliques)


def image(clique: str, version: int) -> str:
    """Return the image of a clique in this version."""
    return f"registry.example/{clique}:{version}"


def kubectl_commands(changes: Iterable[SetChange]) -> Iterator[str]:
    """Yield the kubectl commands that make these changes to the set in set.yaml."""
    desired = TEMPLATE
    yield "kubectl create -f set.yaml"
    for change in changes:
        desired = apply_change(desired, change)
        yield from _commands(change, desired)
        if change.rests:
            yield "# wait until nothing changes any more"


def _commands(change: SetChange, desired: DesiredState) -> Iterator[str]:
    match change.what:
        case "scale-set":
            yield f'kubectl patch podcliqueset {SET} --type merge -p \'{{"spec":{{"replicas":{change.value}}}}}\''
        case "scale-clique":
            yield f"kubectl scale podclique {CLIQUE} --replicas {change.value}"
        case "scale-group":
            yield f"kubectl scale podcliquescalinggroup {GROUP} --replicas {change.value}"
        case "image":
            yield _image_patch(change.part, change.value)
        case "recreate":
            yield f"kubectl delete podcliqueset {SET} && kubectl wait --for delete podclique --all"
            yield "kubectl create -f set.yaml"
            for clique, version in zip(CLIQUES, desired.images, strict=True):
                if version != 1:
                    yield _image_patch(clique, version) + "  # or create it so"
        case "lose-pod":
            selector = f"{labels.CLIQUE}={clique_to_lose_pod(change.part)}"
            yield f"kubectl delete $(kubectl get pod -o name -l {selector} | head -1)"
        case "restart":
            yield "# restart the operator"


def _image_patch(clique: str, version: int) -> str:
    path = f"/spec/template/cliques/{CLIQUES.index(clique)}/spec/podSpec/containers/0/image"
    operation = json.dumps([{"op": "replace", "path": path, "value": image(clique, version)}])
    return f"kubectl patch podcliqueset {SET} --type json -p '{operation}'"


def clique_to_lose_pod(part: str) -> str:
    """Return the name of the PodClique whose pod is lost."""
    return CLIQUE if part == "a" else f"{GROUP}-0-{part}"
