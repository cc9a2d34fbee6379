"""How the scenes of this profile change templates, and what they wait for.

Pods of a changed template can be held: bound, started, and not Ready until the scene releases them. So each step of an
update can be looked at, on any machine.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from conformance.grove import labels, pods, updates
from conformance.grove.fields import label, name, number, text, uid
from conformance.history.query import Predicate, Unmet, predicate
from conformance.history.record import ADDED
from conformance.history.view import View
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.scenes.api import Object
from conformance.suite.scenes.recorded import Span
from conformance.testing import predicates, replay
from conformance.testing.disruption import CLIQUES, GROUPS, SETS
from conformance.testing.scene import SceneEnvironment

__all__ = ["CLIQUES", "GROUPS", "SETS"]
ON_DELETE, ROLLING = "OnDelete", "RollingRecreate"
HELD = "conformance.grove.io/hold-ready"
ROUNDS = 40

Pod = Mapping[str, Any]


def template(workload: Object, clique: str) -> Object:
    """The template of a clique of a workload."""
    found: list[Object] = [each for each in workload["spec"]["template"]["cliques"] if each["name"] == clique]
    return found[0]


def image(workload: Object, *cliques: str, tag: str) -> None:
    """Gives the pods of these cliques another image, in the workload."""
    for each in cliques:
        container = template(workload, each)["spec"]["podSpec"]["containers"][0]
        container["image"] = f"{container['image'].rpartition(':')[0]}:{tag}"


def hold(workload: Object, *cliques: str, off: bool = False) -> None:
    """Keeps new pods of these cliques from becoming Ready, in the workload."""
    for each in cliques:
        annotations = template(workload, each).setdefault("annotations", {})
        annotations.pop(HELD, None)
        annotations.update({} if off else {HELD: "yes"})


def apply(env: SceneEnvironment, workload: Object) -> None:
    """Writes the cliques of a workload, and nothing else, to its set."""
    env.patch(SETS, name(workload), {"spec": {"template": {"cliques": workload["spec"]["template"]["cliques"]}}})


def change(env: SceneEnvironment, workload: Object, *cliques: str, tag: str) -> str:
    """Changes the image of these cliques; returns the generation hash that the set had before."""
    before = updates.generation(env.history.view().get(SETS, name(workload)))
    image(workload, *cliques, tag=tag)
    apply(env, workload)
    return before


def strategy(env: SceneEnvironment, each: str, kind: str) -> None:
    """Changes the update strategy of a set. OnDelete has no use for rollingUpdate, and may be refused with it."""
    changed: Object = {"updateStrategy": {"type": kind}}
    stored = copy.deepcopy((env.history.view().get(SETS, each) or {})["spec"]["template"])
    parts = [*stored["cliques"], *stored.get("podCliqueScalingGroups", [])]
    if kind == ON_DELETE and [part for part in parts if part.pop("rollingUpdate", None)]:
        changed["template"] = {key: stored[key] for key in ("cliques", "podCliqueScalingGroups") if key in stored}
    env.patch(SETS, each, {"spec": changed})


def require_held(env: SceneEnvironment, *cliques: str) -> None:
    """Raise Blocked if the first pods of the second template are not held: that annotations of a template are copied to
    Pods is a SHOULD (RES-115)."""

    def new(view: View) -> list[Pod]:
        return [pod for clique in cliques for pod in predicates.pods_of(view, clique) if tag(pod) == "2"]

    for pod in new(env.settled("a pod of the second template exists", new)):
        if not text(pod, "metadata", "annotations", HELD):
            raise Blocked(f"{name(pod)} lacks the annotation of its template that would hold it", "circumstances")


def release(env: SceneEnvironment, clique: str, but: Iterable[str] = ()) -> None:
    """Lets the held pods of a clique become Ready, apart from those with these uids."""
    for pod in held(env.history.view(), clique):
        if uid(pod) not in but:
            env.patch("pods", name(pod), {"metadata": {"annotations": {HELD: None}}})


def release_until(env: SceneEnvironment, what: str, cliques: Iterable[str], end: Predicate) -> None:
    """Lets held pods of these cliques become Ready whenever there are any, until `end` holds."""
    wanted, released = list(cliques), set[str]()

    def waiting(view: View) -> list[Pod]:
        return [pod for clique in wanted for pod in held(view, clique) if uid(pod) not in released]

    def seen(view: View) -> bool | Unmet:
        return bool(end(view)) or bool(waiting(view)) or Unmet(str(end(view)))

    for _ in range(ROUNDS):
        view = env.settled(what, seen, 60)
        found = waiting(view)
        if end(view) or not found:
            break
        for pod in found:
            released.add(uid(pod))
            env.patch("pods", name(pod), {"metadata": {"annotations": {HELD: None}}})


# -- pods --------------------------------------------------------------------------------------------------------------


def held(view: View, clique: str) -> list[Pod]:
    """The pods of a clique that wait for the scene to release them."""
    return [
        pod
        for pod in predicates.pods_of(view, clique)
        if text(pod, "metadata", "annotations", HELD) and pods.bound(pod)
    ]


def uids(view: View, clique: str) -> set[str]:
    """The uids of the pods of a clique."""
    return {uid(pod) for pod in predicates.pods_of(view, clique)}


def hash_of(pod: Pod) -> str:
    """The template hash in the labels of a pod or clique."""
    return label(pod, labels.TEMPLATE_HASH)


def tag(pod: Pod) -> str:
    """The tag of a pod's image."""
    return text(pod, "spec", "containers", 0, "image").rpartition(":")[2]


def images(view: View, clique: str) -> list[str]:
    """The tags of the images of a clique's pods, sorted."""
    return sorted(tag(pod) for pod in predicates.pods_of(view, clique))


def where(view: View, clique: str, condition: Callable[[Pod], bool]) -> set[str]:
    """The uids of the pods of a clique for which a condition holds."""
    return {uid(pod) for pod in predicates.pods_of(view, clique) if condition(pod)}


def made_of_another(span: Span, clique: str, wanted: str) -> list[str]:
    """The pods of a clique that were created during a part of a history with another tag than the wanted one."""
    made = [record for record in span.records("pods") if record.kind == ADDED and replay.owner(record) == clique]
    return [record.name for record in made if tag(record.object) != wanted]


# -- conditions --------------------------------------------------------------------------------------------------------


@predicate
def one_held(view: View, clique: str, of: str = "2") -> bool | Unmet:
    """One of a clique's two pods is of that template, and held; the other one is Ready."""
    tags = [tag(pod) for pod in held(view, clique)]
    two = len(predicates.pods_of(view, clique)) == 2
    return (tags == [of] and two) or Unmet(f"{clique}: held pods are of {tags}")


@predicate
def begun(view: View, each: str, before: str) -> bool | Unmet:
    """A set reports another generation than before, and an update that has started."""
    found = view.get(SETS, each)
    if updates.generation(found) in ("", before):
        return Unmet(f"{each} still has the generation of before")
    return updates.started(found) != "" or Unmet(f"{each} has no updateProgress")


@predicate
def done(view: View, each: str, before: str) -> bool | Unmet:
    """A set reports the end of the update that followed a generation, and that all its replicas are updated."""
    if not (answer := begun(each, before)(view)):
        return answer
    found = view.get(SETS, each)
    if not updates.ended(found):
        return Unmet(f"the update of {each} has not ended: {dict(updates.progress(found))}")
    wanted, reported = number(found, "spec", "replicas"), number(found, "status", "updatedReplicas")
    return wanted == reported or Unmet(f"updatedReplicas of {each} is {reported}, not {wanted}")


@predicate
def rest_reported(view: View, each: str) -> bool | Unmet:
    """After the end of an update, a set names no replica as being updated, and its counters are at their totals."""
    found = view.get(SETS, each)
    counts = updates.counts(found)
    behind = [one for one, total in updates.COUNTERS if counts[one] != counts[total]]
    return not (behind or updates.turns(found)) or Unmet(f"{each} reports {dict(updates.progress(found))}")


@predicate
def parts_ended(view: View, each: str, parts: Collection[tuple[str, str]]) -> bool | Unmet:
    """A set and these of its cliques and groups, by resource and name, report an update that has ended."""
    late = [part for kind, part in ((SETS, each), *parts) if not updates.ended(view.get(kind, part))]
    return not late or Unmet(f"no update has started and ended at {', '.join(late)}")


def deleted(clique: str, wanted: Iterable[str]) -> Predicate:
    """Each of these pods (uids) of a clique is deleted, or being deleted."""
    before = set(wanted)

    def seen(view: View) -> bool | Unmet:
        still = [name(pod) for pod in predicates.pods_of(view, clique) if uid(pod) in before]
        return not still or Unmet(f"still there: {', '.join(still)}")

    return seen


def replaced(clique: str, before: Iterable[str], counts: Collection[int], total: int) -> Predicate:
    """One of `counts` of these pods (uids) of a clique are deleted, and the clique has `total` bound pods."""
    known = set(before)

    def seen(view: View) -> bool | Unmet:
        found = predicates.pods_of(view, clique)
        lost, bound = len(known - {uid(pod) for pod in found}), sum(map(pods.bound, found))
        return (lost in counts and bound == total) or Unmet(
            f"{clique}: {lost} of {len(known)} pods are deleted, wanted {' or '.join(map(str, counts))}; "
            f"{bound} are bound, wanted {total}"
        )

    return seen


@predicate
def ready(view: View, sizes: Mapping[str, int]) -> bool | Unmet:
    """Each of these cliques reports this number of Ready pods."""
    reported = {clique: number(view.get(CLIQUES, clique), "status", "readyReplicas") for clique in sizes}
    return reported == dict(sizes) or Unmet(f"readyReplicas: {reported}, wanted: {dict(sizes)}")
