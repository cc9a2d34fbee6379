"""How the tests of this profile change templates, and what they wait for.

Pods of a changed template can be held: bound, started, and not Ready until the test lets them be. So each step of an
update can be looked at, on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from conformance.grove import labels, pods, updates
from conformance.grove.fields import label, name, number, text, uid
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.api import Object
from conformance.suite.case import Case
from conformance.testing import predicates

SETS, CLIQUES, GROUPS = "podcliquesets", "podcliques", "podcliquescalinggroups"
ON_DELETE, ROLLING = "OnDelete", "RollingRecreate"
HELD = "conformance.grove.io/hold-ready"
ROUNDS = 40

Pod = Mapping[str, Any]


def template(workload: Object, clique: str) -> Object:
    found: list[Object] = [each for each in workload["spec"]["template"]["cliques"] if each["name"] == clique]
    return found[0]


def image(workload: Object, *cliques: str, tag: str) -> None:
    """Gives the pods of these cliques another image, in the workload."""
    for each in cliques:
        container = template(workload, each)["spec"]["podSpec"]["containers"][0]
        container["image"] = f"{container['image'].rpartition(':')[0]}:{tag}"


def hold(workload: Object, *cliques: str, off: bool = False) -> None:
    """Has pods of these cliques not become Ready from now on, in the workload."""
    for each in cliques:
        annotations = template(workload, each).setdefault("annotations", {})
        annotations.pop(HELD, None)
        annotations.update({} if off else {HELD: "yes"})


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


def release(case: Case, clique: str, but: Iterable[str] = ()) -> None:
    """Lets the held pods of a clique become Ready, apart from those with these uids."""
    for pod in held(case.history.view(), clique):
        if uid(pod) not in but:
            case.patch("pods", name(pod), {"metadata": {"annotations": {HELD: None}}})


def held(view: View, clique: str) -> list[Pod]:
    return [
        pod
        for pod in predicates.pods_of(view, clique)
        if text(pod, "metadata", "annotations", HELD) and pods.bound(pod)
    ]


def one_held(clique: str, of: str = "2") -> predicates.Predicate:
    """One of a clique's two pods is of that template, and waits for the test; the other one is Ready."""

    def seen(view: View) -> bool | Unmet:
        tags = [tag(pod) for pod in held(view, clique)]
        two = len(predicates.pods_of(view, clique)) == 2
        return (tags == [of] and two) or Unmet(f"{clique}: held pods are of {tags}")

    return seen


def nurse(case: Case, ids: str | tuple[str, ...], what: str, cliques: Iterable[str], end: predicates.Predicate) -> None:
    """Lets pods of these cliques become Ready whenever there are held ones, until `end`. Without ids that is all."""
    wanted, free = list(cliques), set[str]()

    def waiting(view: View) -> list[Pod]:
        return [pod for clique in wanted for pod in held(view, clique) if uid(pod) not in free]

    def seen(view: View) -> bool | Unmet:
        return bool(end(view)) or bool(waiting(view)) or Unmet(str(end(view)))

    for _ in range(ROUNDS):
        view = case.settled(what, seen, 60)
        pods_now = waiting(view)
        if end(view) or not pods_now:
            break
        for pod in pods_now:
            free.add(uid(pod))
            case.patch("pods", name(pod), {"metadata": {"annotations": {HELD: None}}})
    if ids:
        case.until(ids, what, end, 30)


def begun(each: str, before: str) -> predicates.Predicate:
    """A set says that it is of another generation than before, and that an update has begun."""

    def seen(view: View) -> bool | Unmet:
        found = view.get(SETS, each)
        if updates.generation(found) in ("", before):
            return Unmet(f"{each} has still the generation of before")
        return updates.started(found) != "" or Unmet(f"{each} has no updateProgress")

    return seen


def done(each: str, before: str) -> predicates.Predicate:
    """A set says that the update that followed on a generation has ended, and that all its replicas are updated."""

    def seen(view: View) -> bool | Unmet:
        if not (answer := begun(each, before)(view)):
            return answer
        found = view.get(SETS, each)
        if not updates.ended(found):
            return Unmet(f"the update of {each} has not ended: {dict(updates.progress(found))}")
        wanted, told = number(found, "spec", "replicas"), number(found, "status", "updatedReplicas")
        return wanted == told or Unmet(f"updatedReplicas of {each} is {told}, not {wanted}")

    return seen


def left(clique: str, wanted: Iterable[str]) -> predicates.Predicate:
    """Of these pods (uids) of a clique none is left but for those that are being deleted."""
    before = set(wanted)

    def seen(view: View) -> bool | Unmet:
        still = [name(pod) for pod in predicates.pods_of(view, clique) if uid(pod) in before]
        return not still or Unmet(f"still there: {', '.join(still)}")

    return seen


def anew(clique: str, before: Iterable[str], counts: Collection[int], total: int) -> predicates.Predicate:
    """One of `counts` of these pods (uids) of a clique have been replaced, and it has `total` bound pods in all."""
    known = set(before)

    def seen(view: View) -> bool | Unmet:
        found = predicates.pods_of(view, clique)
        gone, bound = len(known - {uid(pod) for pod in found}), sum(map(pods.bound, found))
        return (gone in counts and bound == total) or Unmet(
            f"{clique}: {gone} of {len(known)} pods have gone, wanted {' or '.join(map(str, counts))}; "
            f"{bound} are bound, wanted {total}"
        )

    return seen


def whole(sizes: Mapping[str, int]) -> predicates.Predicate:
    """Each of these cliques says that so many of its pods are Ready."""

    def seen(view: View) -> bool | Unmet:
        told = {clique: number(view.get(CLIQUES, clique), "status", "readyReplicas") for clique in sizes}
        return told == dict(sizes) or Unmet(f"readyReplicas: {told}, wanted: {dict(sizes)}")

    return seen


def uids(view: View, clique: str) -> set[str]:
    return {uid(pod) for pod in predicates.pods_of(view, clique)}


def hash_of(pod: Pod) -> str:
    return label(pod, labels.TEMPLATE_HASH)


def images(view: View, clique: str) -> list[str]:
    """The tags of the images of a clique's pods, sorted."""
    return sorted(tag(pod) for pod in predicates.pods_of(view, clique))


def tag(pod: Pod) -> str:
    return text(pod, "spec", "containers", 0, "image").rpartition(":")[2]


def where(view: View, clique: str, condition: Callable[[Pod], bool]) -> set[str]:
    """The uids of the pods of a clique of which something holds."""
    return {uid(pod) for pod in predicates.pods_of(view, clique) if condition(pod)}
