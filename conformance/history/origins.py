"""Facts about the objects of a history that follow from who wrote them, independent of the objects' own contents.

Any user can put a label, an annotation or a condition on an object. A rule that exempts an object therefore relies on
the suite's own requests, by the uid in the API server's response. A rule that excuses something because of a condition
or a taint relies on the API server's audit log to find out which user wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from conformance.cluster import users
from conformance.grove.fields import label, text
from conformance.grove.labels import BY_HAND


class ByHand(msgspec.Struct, frozen=True):
    """An object that the suite created instead of an operator, as it sent it: its labels, and whether it is a Pod that
    was created with a node."""

    labels: dict[str, str] = {}
    bound: bool = False

    @property
    def scenario(self) -> str:
        """Return the scenario that the object was created for."""
        return self.labels.get(BY_HAND, "")


class Origins(msgspec.Struct):
    """The writers of objects, as far as they are known."""

    by_hand: dict[str, ByHand] = {}
    """By uid."""
    excused: set[str] = set()
    """Pods, by uid, that the suite itself has deleted or given the hash of another template, or that were deleted while
    another version was the operator."""
    stripped: set[str] = set()
    """Objects, by uid, from which the suite itself has removed the owner reference."""
    deleted_by: dict[str, list[str]] | None = None
    """The users that requested the deletion of each pod with the condition DisruptionTarget. None if they are not
    known, because the cluster is not one of the suite."""
    changed_nodes: list[str] = []
    """Nodes that a user other than the suite and the components of the cluster has written to."""
    statuses: dict[str, str] = {}
    """The user, by resource version, of each pod status that neither the suite nor a component of the cluster has
    written."""
    altered: list[str] = []
    """Sentences about objects that were stored with other contents than the suite or a component of the cluster has
    sent, and about limits of a test that another user has changed."""

    def sent(self, request: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Note an object that the suite has created: what it sent, and what the API server answered."""
        if label(request, BY_HAND):
            by_hand = ByHand(dict(request["metadata"]["labels"]), bool(text(request, "spec", "nodeName")))
            self.by_hand[text(answer, "metadata", "uid")] = by_hand

    def disrupted(self, pod: str, *other_users: str) -> bool:
        """Return whether a pod with the condition DisruptionTarget was deleted by a component of the cluster, or by one
        of these other users. Without an audit log, the condition is trusted."""
        if self.deleted_by is None:
            return True
        return any(users.is_component(user) or user in other_users for user in self.deleted_by.get(pod, ()))
