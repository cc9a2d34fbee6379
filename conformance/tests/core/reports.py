"""Predicates on what statuses and events report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from conformance.grove.fields import condition_is, items, number, text
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing.disruption import BREACHED, CLIQUES, GROUPS


@predicate
def available(view: View, resource: str, name: str, count: int) -> bool | Unmet:
    """An object reports so many available replicas."""
    found = number(view.get(resource, name), "status", "availableReplicas")
    return found == count or Unmet(f"{resource}/{name} has {found} of {count} available replicas")


@predicate
def counts(view: View, clique: str, wanted: Mapping[str, int]) -> bool | Unmet:
    """The status of a clique has these numbers."""
    found = view.get(CLIQUES, clique)
    reported = {field: number(found, "status", field) for field in wanted}
    return reported == dict(wanted) or Unmet(f"{clique} reports {reported}, not {dict(wanted)}")


@predicate
def conditions(view: View, clique: str, wanted: Mapping[str, str]) -> bool | Unmet:
    """The conditions of a clique have these statuses."""
    found = view.get(CLIQUES, clique)
    reported = {kind: condition_is(found, kind) for kind in wanted}
    return reported == dict(wanted) or Unmet(f"{clique} reports {reported}")


@predicate
def group_breached(view: View, group: str, status: str) -> bool | Unmet:
    """MinAvailableBreached of a scaling group has this status."""
    found = condition_is(view.get(GROUPS, group), BREACHED)
    return found == status or Unmet(f"{BREACHED} of {group} is {found or 'absent'}")


@predicate
def warned(view: View, name: str) -> bool | Unmet:
    """A Warning event says that all scheduled replicas of an object are lost."""
    for event in view.list("events"):
        about = event.get("regarding") or event.get("involvedObject")
        if text(event, "reason") == "AllScheduledReplicasLost" and text(about, "name") == name:
            return text(event, "type") == "Warning" or Unmet(f"the event is of type {text(event, 'type')}")
    return Unmet("there is no event AllScheduledReplicasLost about it")


@predicate
def an_error(view: View, cliques: Iterable[str]) -> str | Unmet:
    """The name of a clique whose lastErrors describe an error."""
    for clique in cliques:
        if any(text(error, "description") for error in items(view.get(CLIQUES, clique), "status", "lastErrors")):
            return clique
    return Unmet("no clique has an error in its lastErrors")


@predicate
def no_errors(view: View, clique: str) -> bool | Unmet:
    """The lastErrors of a clique are empty."""
    errors = items(view.get(CLIQUES, clique), "status", "lastErrors")
    return not errors or Unmet(f"lastErrors of {clique} still has {errors}")
