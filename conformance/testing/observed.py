"""What the tests of several profiles read from the objects that they judge, and wait for."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.grove.expected import Expected
from conformance.grove.fields import Document, at, count, items, number, text
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.scene_environment import SceneEnvironment
from conformance.testing import predicates


def there(resource: str, names: Iterable[str]) -> predicates.Predicate:
    """All of these exist."""
    wanted = sorted(names)

    def seen(view: View) -> bool | Unmet:
        lacking = [name for name in wanted if view.get(resource, name) is None]
        return not lacking or Unmet(f"no {resource}/{', '.join(lacking)}")

    return seen


def all_of(*wanted: predicates.Predicate) -> predicates.Predicate:
    """All of these at once: one wait, where a wrong implementation would have several run out one by one."""

    def seen(view: View) -> bool | Unmet:
        missed = [str(answer) for predicate in wanted if not (answer := predicate(view))]
        return not missed or Unmet("; ".join(missed))

    return seen


def gone(resource: str, names: Iterable[str]) -> predicates.Predicate:
    """None of these exists."""
    unwanted = sorted(names)

    def seen(view: View) -> bool | Unmet:
        left = [name for name in unwanted if view.get(resource, name) is not None]
        return not left or Unmet(f"still there: {resource}/{', '.join(left)}")

    return seen


def replaced(resource: str, name: str, uid: str) -> predicates.Predicate:
    """The object exists, and is not the one of that uid."""

    def seen(view: View) -> bool | Unmet:
        found = view.get(resource, name)
        if found is None:
            return Unmet(f"no {resource}/{name}")
        return text(found, "metadata", "uid") != uid or Unmet(f"{resource}/{name} was not recreated")

    return seen


def errors(found: Document | None) -> list[str]:
    """The codes in `status.lastErrors`."""
    return [text(entry, "code") for entry in items(found, "status", "lastErrors")]


def complains(set_name: str) -> predicates.Predicate:
    """The set reports any error."""

    def seen(view: View) -> bool | Unmet:
        return errors(view.get("podcliquesets", set_name)) != [] or Unmet("its lastErrors is empty")

    return seen


def claims_of_pod(pod: Document) -> list[str]:
    """The ResourceClaims that a pod names, whatever it calls them."""
    return [text(entry, "resourceClaimName") for entry in items(pod, "spec", "resourceClaims")]


def claims_of_container(pod: Document, container: Document) -> list[str]:
    """The ResourceClaims that a container uses, by the names that the pod has for them."""
    named = {text(entry, "name"): text(entry, "resourceClaimName") for entry in items(pod, "spec", "resourceClaims")}
    return [named.get(text(entry, "name"), "") for entry in items(container, "resources", "claims")]


def rest(env: SceneEnvironment, wanted: Expected) -> View:
    """Waits until the statuses of all cliques are those of pods that nobody schedules, and nothing moves any more: from
    then on an operator reconciles the set only for a reason that the test gives. Judges nothing."""

    def reported(view: View) -> bool | Unmet:
        for clique in wanted.cliques.values():
            status = at(view.get("podcliques", clique.name), "status")
            pods = clique.template.replicas
            gated = pods if clique.base_gang else 0  # those of the base gang lose their gates and wait
            if number(status, "replicas") != pods or count(status, "scheduleGatedReplicas") != gated:
                return Unmet(f"the status of {clique.name} is behind")
        return True

    env.settled("every clique reports its pods", reported)
    return env.quiet(2)


def annotation(found: Document | None, key: str) -> str:
    return text(found, "metadata", "annotations", key)


def replicas(found: Document | None) -> object:
    return at(found, "spec", "replicas")
