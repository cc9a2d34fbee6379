"""How the tests of this profile change templates, and what they wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from conformance.grove import labels, pods, updates
from conformance.grove.fields import label, name, number, text, uid
from conformance.history import sights
from conformance.history.query import Miss
from conformance.history.view import View
from conformance.suite.api import Object
from conformance.suite.case import Case
from conformance.tests.termination import scenes
from conformance.tests.termination.scenes import CLIQUES, GROUPS, SERVING, SETS

ON_DELETE, ROLLING = "OnDelete", "RollingRecreate"
__all__ = ["CLIQUES", "GROUPS", "ON_DELETE", "ROLLING", "SETS"]


def template(workload: Object, clique: str) -> Object:
    found: list[Object] = [each for each in workload["spec"]["template"]["cliques"] if each["name"] == clique]
    return found[0]


def image(workload: Object, *cliques: str, tag: str) -> None:
    """Gives the pods of these cliques another image, in the workload."""
    for each in cliques:
        container = template(workload, each)["spec"]["podSpec"]["containers"][0]
        container["image"] = f"{container['image'].rpartition(':')[0]}:{tag}"


def apply(case: Case, workload: Object) -> None:
    """Writes the cliques of a workload, and nothing else, to its set."""
    case.patch(SETS, name(workload), {"spec": {"template": {"cliques": workload["spec"]["template"]["cliques"]}}})


def change(case: Case, workload: Object, *cliques: str, tag: str) -> str:
    """Changes the image of these cliques; gives the hash of the set's generation before."""
    before = updates.generation(case.history.view().get(SETS, name(workload)))
    image(workload, *cliques, tag=tag)
    apply(case, workload)
    return before


def strategy(case: Case, each: str, kind: str) -> None:
    case.patch(SETS, each, {"spec": {"updateStrategy": {"type": kind}}})


def begun(each: str, before: str) -> sights.Sight:
    """A set says that it is of another generation than before, and that an update has begun."""

    def seen(view: View) -> bool | Miss:
        found = view.get(SETS, each)
        if updates.generation(found) in ("", before):
            return Miss(f"{each} has still the generation of before")
        return updates.started(found) != "" or Miss(f"{each} has no updateProgress")

    return seen


def done(each: str, before: str) -> sights.Sight:
    """A set says that the update that followed on a generation has ended, and that all its replicas are updated."""

    def seen(view: View) -> bool | Miss:
        if not (answer := begun(each, before)(view)):
            return answer
        found = view.get(SETS, each)
        if not updates.ended(found):
            return Miss(f"the update of {each} has not ended: {updates.progress(found)}")
        wanted, told = number(found, "spec", "replicas"), number(found, "status", "updatedReplicas")
        return wanted == told or Miss(f"updatedReplicas of {each} is {told}, not {wanted}")

    return seen


def left(clique: str, wanted: Iterable[str]) -> sights.Sight:
    """Of these pods (uids) of a clique none is left but for those that are being deleted."""
    before = set(wanted)

    def seen(view: View) -> bool | Miss:
        still = [name(pod) for pod in sights.pods_of(view, clique) if uid(pod) in before]
        return not still or Miss(f"still there: {', '.join(still)}")

    return seen


def anew(case: Case, clique: str, before: Iterable[str], count: int, total: int) -> sights.Sight:
    """Of these pods (uids) of a clique so many have gone, and it has `total` bound pods in all."""
    known = set(before)

    def seen(view: View) -> bool | Miss:
        found = sights.pods_of(view, clique)
        gone = len(known - {uid(pod) for pod in found})
        bound = sum(map(pods.bound, found))
        return (gone, bound) == (count, total) or Miss(
            f"{clique}: {gone} of {len(known)} old pods have gone, wanted {count}; {bound} bound pods, wanted {total}"
        )

    return seen


def uids(case: Case, clique: str) -> dict[str, str]:
    """Index → uid of the pods of a clique."""
    return {label(pod, labels.POD_INDEX): uid(pod) for pod in sights.pods_of(case.history.view(), clique)}


def serve(case: Case, clique: str, but: Callable[[Mapping[str, Any]], bool] = lambda pod: False) -> None:
    """Makes those pods of a clique Ready that are not, where the test writes their status."""
    for pod in scenes.by_index(case, clique):
        if not pods.ready(pod) and pods.bound(pod) and not but(pod):
            case.patch("pods", name(pod), health_of(pod), subresource="status")


def health_of(pod: Mapping[str, Any]) -> dict[str, Any]:
    from conformance.grove import health

    return health.status(pod, SERVING)


def hash_of(pod: Mapping[str, Any]) -> str:
    return label(pod, labels.TEMPLATE_HASH)


def images(case: Case, clique: str) -> list[str]:
    """The images of a clique's pods, sorted."""
    found = sights.pods_of(case.history.view(), clique)
    return sorted(text(pod, "spec", "containers", 0, "image").rpartition(":")[2] for pod in found)
