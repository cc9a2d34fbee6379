"""Fields of objects that the tests of several profiles read, and predicates that they wait for."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.grove.expected import ExpectedObjects
from conformance.grove.fields import Document, at, count, items, number, text
from conformance.history.query import Predicate, Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.scene_environment import SceneEnvironment


def are_present(resource: str, names: Iterable[str]) -> Predicate:
    """All these objects exist."""
    expected = sorted(names)

    def check(view: View) -> bool | Unmet:
        missing = [name for name in expected if view.get(resource, name) is None]
        return not missing or Unmet(f"no {resource}/{', '.join(missing)}")

    return check


@predicate
def all_of(view: View, *predicates: Predicate) -> bool | Unmet:
    """All these predicates hold at the same time. Because it is a single wait, an incorrect implementation times out
    once instead of several times."""
    missed = [str(answer) for condition in predicates if not (answer := condition(view))]
    return not missed or Unmet("; ".join(missed))


def are_absent(resource: str, names: Iterable[str]) -> Predicate:
    """None of these objects exists."""
    unwanted = sorted(names)

    def check(view: View) -> bool | Unmet:
        remaining = [name for name in unwanted if view.get(resource, name) is not None]
        return not remaining or Unmet(f"still there: {resource}/{', '.join(remaining)}")

    return check


@predicate
def is_recreated(view: View, resource: str, name: str, uid: str) -> bool | Unmet:
    """The object exists and its UID differs from this one."""
    current = view.get(resource, name)
    if current is None:
        return Unmet(f"no {resource}/{name}")
    return text(current, "metadata", "uid") != uid or Unmet(f"{resource}/{name} was not recreated")


def error_codes(document: Document | None) -> list[str]:
    """Return the codes of the errors in `status.lastErrors`."""
    return [text(entry, "code") for entry in items(document, "status", "lastErrors")]


@predicate
def reports_error(view: View, set_name: str) -> bool | Unmet:
    """The set reports an error."""
    return error_codes(view.get("podcliquesets", set_name)) != [] or Unmet("its lastErrors is empty")


def claims_of_pod(pod: Document) -> list[str]:
    """Return the names of the ResourceClaims that a pod references, regardless of their names within the pod."""
    return [text(entry, "resourceClaimName") for entry in items(pod, "spec", "resourceClaims")]


def claims_of_container(pod: Document, container: Document) -> list[str]:
    """Return the names of the ResourceClaims that a container uses. The container refers to them by their names within
    the pod."""
    claims_by_name = {
        text(entry, "name"): text(entry, "resourceClaimName") for entry in items(pod, "spec", "resourceClaims")
    }
    return [claims_by_name.get(text(entry, "name"), "") for entry in items(container, "resources", "claims")]


def wait_for_rest(env: SceneEnvironment, expected: ExpectedObjects) -> View:
    """Wait until the statuses of all cliques count their pods, none of which is scheduled, and nothing changes any
    more. From then on, an operator reconciles the set only if the test gives it a reason to. This wait judges
    nothing."""

    def reported(view: View) -> bool | Unmet:
        for clique in expected.cliques.values():
            status = at(view.get("podcliques", clique.name), "status")
            pods = clique.template.replicas
            gated = pods if clique.base_gang else 0  # pods of the base gang lose their gates and wait
            if number(status, "replicas") != pods or count(status, "scheduleGatedReplicas") != gated:
                return Unmet(f"the status of {clique.name} is behind")
        return True

    env.settled("every clique reports its pods", reported)
    return env.quiet(2)


def annotation(document: Document | None, key: str) -> str:
    """Return an annotation of an object, or an empty string if it is missing."""
    return text(document, "metadata", "annotations", key)


def replicas(document: Document | None) -> object:
    """Return `spec.replicas` of an object, or None if it is missing."""
    return at(document, "spec", "replicas")
