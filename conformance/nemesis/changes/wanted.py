"""What a user wants of the set `kept`, and the changes of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conformance.grove import labels, workloads

SET, CLIQUE, GROUP = "kept", "kept-0-a", "kept-0-g"
VALUES = {"groupsMinAvailable": 1, "aloneMinAvailable": 1, "members": 1, "membersMinAvailable": 1}
CLIQUES = ("a", "b", "c")
"""The cliques of the set: `a` stands alone, `b` and `c` are those of the group `g`."""


@dataclass(frozen=True)
class Wanted:
    """What is wanted: replicas of the set, pods of its clique a, replicas of its group g, and versions of the images of
    a, b and c. The two in the middle are those of replica 0 of the set; others have what the template says."""

    replicas: int = 1
    alone: int = 2
    groups: int = 2
    images: tuple[int, ...] = (1, 1, 1)


TEMPLATE = Wanted()
"""What the template says."""


@dataclass(frozen=True)
class Change:
    """One change. `what`: scale-set, scale-clique, scale-group, image (of the clique `part`), recreate, lose-pod (of
    the clique `part`) or restart (of the operator). `rests`: whether nothing else is done until it has had its effect.
    """

    what: str
    part: str = ""
    value: int = 0
    rests: bool = True

    def __str__(self) -> str:
        words = " ".join(filter(None, (self.what, self.part, str(self.value or ""))))
        return words if self.rests else f"{words} (at once)"


def after(wanted: Wanted, change: Change) -> Wanted:
    """Return what is wanted after a change."""
    match change.what:
        case "scale-set":
            return replace(wanted, replicas=change.value)
        case "scale-clique":
            return replace(wanted, alone=change.value)
        case "scale-group":
            return replace(wanted, groups=change.value)
        case "image":
            place = CLIQUES.index(change.part)
            return replace(wanted, images=(*wanted.images[:place], change.value, *wanted.images[place + 1 :]))
        case "recreate":
            return replace(wanted, alone=TEMPLATE.alone, groups=TEMPLATE.groups)
    return wanted


def after_all(changes: Iterable[Change]) -> Wanted:
    """Return what is wanted in the end."""
    wanted = TEMPLATE
    for change in changes:
        wanted = after(wanted, change)
    return wanted


def straight(wanted: Wanted) -> list[Change]:
    """Return the changes with which a set gets there that was created with the right images and replicas."""
    sizes = [Change("scale-clique", value=wanted.alone), Change("scale-group", value=wanted.groups)]
    present = (TEMPLATE.alone, TEMPLATE.groups)
    return [change for change, size in zip(sizes, present, strict=True) if change.value != size]


def manifest(wanted: Wanted) -> dict[str, Any]:
    """Return the set, with the images and the replicas that are wanted."""
    found = workloads.load("kept", {**VALUES, "setName": SET, "replicas": wanted.replicas})
    found["spec"]["template"]["cliques"] = cliques(wanted, found["spec"]["template"]["cliques"])
    return found


def cliques(wanted: Wanted, stored: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the cliques of a template with the images that are wanted."""
    found = json.loads(json.dumps(list(stored)))
    for clique in found:
        version = wanted.images[CLIQUES.index(clique["name"])]
        clique["spec"]["podSpec"]["containers"][0]["image"] = image(clique["name"], version)
    return list(found)


def image(clique: str, version: int) -> str:
    """Return the image of a version."""
    return f"registry.example/{clique}:{version}"


def kubectl(changes: Iterable[Change]) -> Iterator[str]:
    """Return the commands with which a person makes these changes of the set in set.yaml."""
    wanted = TEMPLATE
    yield "kubectl create -f set.yaml"
    for change in changes:
        wanted = after(wanted, change)
        yield from _commands(change, wanted)
        if change.rests:
            yield "# wait until nothing changes any more"


def _commands(change: Change, wanted: Wanted) -> Iterator[str]:
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
            for clique, version in zip(CLIQUES, wanted.images, strict=True):
                if version != 1:
                    yield _image_patch(clique, version) + "  # or create it so"
        case "lose-pod":
            yield f"kubectl delete $(kubectl get pod -o name -l {labels.CLIQUE}={lost(change.part)} | head -1)"
        case "restart":
            yield "# restart the operator"


def _image_patch(clique: str, version: int) -> str:
    path = f"/spec/template/cliques/{CLIQUES.index(clique)}/spec/podSpec/containers/0/image"
    operation = json.dumps([{"op": "replace", "path": path, "value": image(clique, version)}])
    return f"kubectl patch podcliqueset {SET} --type json -p '{operation}'"


def lost(part: str) -> str:
    """Return the PodClique whose pod is lost."""
    return CLIQUE if part == "a" else f"{GROUP}-0-{part}"
