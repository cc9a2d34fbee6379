"""Predicates on what statuses and events report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from conformance.grove.fields import condition_is, items, number, text
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.disruption import BREACHED, CLIQUES, GROUPS


def available(resource: str, name: str, count: int) -> predicates.Predicate:
    """An object reports so many available replicas."""

    def seen(view: View) -> bool | Unmet:
        found = number(view.get(resource, name), "status", "availableReplicas")
        return found == count or Unmet(f"{resource}/{name} has {found} of {count} available replicas")

    return seen


def counts(clique: str, wanted: Mapping[str, int]) -> predicates.Predicate:
    """The status of a clique has these numbers."""

    def seen(view: View) -> bool | Unmet:
        found = view.get(CLIQUES, clique)
        reported = {field: number(found, "status", field) for field in wanted}
        return reported == dict(wanted) or Unmet(f"{clique} reports {reported}, not {dict(wanted)}")

    return seen


def conditions(clique: str, wanted: Mapping[str, str]) -> predicates.Predicate:
    """The conditions of a clique have these statuses."""

    def seen(view: View) -> bool | Unmet:
        found = view.get(CLIQUES, clique)
        reported = {kind: condition_is(found, kind) for kind in wanted}
        return reported == dict(wanted) or Unmet(f"{clique} reports {reported}")

    return seen


def group_breached(group: str, status: str) -> predicates.Predicate:
    """MinAvailableBreached of a scaling group has this status."""

    def seen(view: View) -> bool | Unmet:
        found = condition_is(view.get(GROUPS, group), BREACHED)
        return found == status or Unmet(f"{BREACHED} of {group} is {found or 'absent'}")

    return seen


def warned(name: str) -> predicates.Predicate:
    """A Warning event says that all scheduled replicas of an object are lost."""

    def seen(view: View) -> bool | Unmet:
        for event in view.list("events"):
            about = event.get("regarding") or event.get("involvedObject")
            if text(event, "reason") == "AllScheduledReplicasLost" and text(about, "name") == name:
                return text(event, "type") == "Warning" or Unmet(f"the event is of type {text(event, 'type')}")
        return Unmet("there is no event AllScheduledReplicasLost about it")

    return seen


def an_error(cliques: Iterable[str]) -> Callable[[View], str | Unmet]:
    """The name of a clique whose lastErrors describe an error."""

    def seen(view: View) -> str | Unmet:
        for clique in cliques:
            if any(text(error, "description") for error in items(view.get(CLIQUES, clique), "status", "lastErrors")):
                return clique
        return Unmet("no clique has an error in its lastErrors")

    return seen


def no_errors(clique: str) -> predicates.Predicate:
    """The lastErrors of a clique are empty."""

    def seen(view: View) -> bool | Unmet:
        errors = items(view.get(CLIQUES, clique), "status", "lastErrors")
        return not errors or Unmet(f"lastErrors of {clique} still has {errors}")

    return seen
