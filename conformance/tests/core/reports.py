"""Predicates about what statuses and events report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from conformance.grove.fields import condition_is, items, number, text
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing.disruption import BREACHED, CLIQUES, GROUPS, SETS

SET, WARNING = "PodCliqueSet", "Warning"


@predicate
def has_available_replicas(view: View, resource: str, name: str, count: int) -> bool | Unmet:
    """The status of an object reports this number of available replicas."""
    observed = number(view.get(resource, name), "status", "availableReplicas")
    return observed == count or Unmet(f"{resource}/{name} has {observed} of {count} available replicas")


@predicate
def has_counts(view: View, clique: str, expected: Mapping[str, int]) -> bool | Unmet:
    """The status of a clique has these numbers."""
    podclique = view.get(CLIQUES, clique)
    observed = {field: number(podclique, "status", field) for field in expected}
    return observed == dict(expected) or Unmet(f"{clique} reports {observed}, not {dict(expected)}")


@predicate
def has_conditions(view: View, clique: str, expected: Mapping[str, str]) -> bool | Unmet:
    """The conditions of a clique have these statuses."""
    podclique = view.get(CLIQUES, clique)
    observed = {condition_type: condition_is(podclique, condition_type) for condition_type in expected}
    return observed == dict(expected) or Unmet(f"{clique} reports {observed}")


@predicate
def is_group_breached(view: View, group: str, status: str) -> bool | Unmet:
    """MinAvailableBreached of a scaling group has this status."""
    observed = condition_is(view.get(GROUPS, group), BREACHED)
    return observed == status or Unmet(f"{BREACHED} of {group} is {observed or 'absent'}")


@predicate
def has_warning(view: View, name: str) -> bool | Unmet:
    """A Warning event reports that all scheduled replicas of an object are lost."""
    for event in view.list("events"):
        target = event.get("regarding") or event.get("involvedObject")
        if text(event, "reason") == "AllScheduledReplicasLost" and text(target, "name") == name:
            return text(event, "type") == "Warning" or Unmet(f"the event is of type {text(event, 'type')}")
    return Unmet("there is no event AllScheduledReplicasLost about it")


@predicate
def find_clique_with_error(view: View, cliques: Iterable[str]) -> str | Unmet:
    """Return the name of a clique whose lastErrors describe an error."""
    for clique in cliques:
        if any(text(error, "description") for error in items(view.get(CLIQUES, clique), "status", "lastErrors")):
            return clique
    return Unmet("no clique has an error in its lastErrors")


@predicate
def set_has_error(view: View, name: str, words: str) -> bool | Unmet:
    """The lastErrors of a set contain these words."""
    errors = [text(error, "description") for error in items(view.get(SETS, name), "status", "lastErrors")]
    return any(words in error for error in errors) or Unmet(f"lastErrors of {SETS}/{name} has {errors or 'no entry'}")


@predicate
def set_has_warning(view: View, name: str, words: str) -> bool | Unmet:
    """A Warning event about a set contains these words."""
    events = map(event_fields, view.list("events"))
    messages = [message for target, kind, _, message in events if (target, kind) == (f"{SET}/{name}", WARNING)]
    return any(words in message for message in messages) or Unmet(
        f"Warning events about the set {name}: {messages or 'none'}"
    )


def event_fields(obj: Mapping[str, object]) -> tuple[str, str, str, str]:
    """Return the object that an event is about, and the event's type, reason and message. Both event APIs are
    supported."""
    target = obj.get("regarding") or obj.get("involvedObject")
    message = text(obj, "note") or text(obj, "message")
    return f"{text(target, 'kind')}/{text(target, 'name')}", text(obj, "type"), text(obj, "reason"), message


@predicate
def has_no_errors(view: View, resource: str, name: str) -> bool | Unmet:
    """An object reports no lastErrors."""
    errors = items(view.get(resource, name), "status", "lastErrors")
    return not errors or Unmet(f"lastErrors of {resource}/{name} still has {errors}")
