"""Facts about the objects of a history that follow from their writers, independent of the objects' own contents.

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
    """An object that the suite created instead of an operator: the labels that the suite sent, and whether it is a Pod
    that was created with a nodeName."""

    labels: dict[str, str] = {}
    bound: bool = False

    @property
    def scenario(self) -> str:
        """Return the scenario for which the object was created."""
        return self.labels.get(BY_HAND, "")


class Origins(msgspec.Struct):
    """The known writers of objects."""

    by_hand: dict[str, ByHand] = {}
    """UID → the object that the suite created."""
    excused: set[str] = set()
    """UIDs of pods that the suite itself has deleted or given the hash of another template, or that were deleted while
    another version was the operator."""
    stripped: set[str] = set()
    """UIDs of objects from which the suite itself has removed the owner reference."""
    deleted_by: dict[str, list[str]] | None = None
    """Pod with the condition DisruptionTarget → the users that requested its deletion. None if they are unknown,
    because the cluster is not one of the suite's."""
    changed_nodes: list[str] = []
    """Nodes to which a user other than the suite and the components of the cluster has written."""
    statuses: dict[str, str] = {}
    """resourceVersion of a pod status that neither the suite nor a component of the cluster has written → the user that
    wrote it."""
    altered: list[str] = []
    """Messages about objects that were stored with contents different from what the suite or a component of the cluster
    sent, and about quotas or limit ranges of a test that another user has changed."""

    def record_created(self, request: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Record an object that the suite has created: the request and the API server's response."""
        if label(request, BY_HAND):
            by_hand = ByHand(dict(request["metadata"]["labels"]), bool(text(request, "spec", "nodeName")))
            self.by_hand[text(answer, "metadata", "uid")] = by_hand

    def is_disrupted(self, pod: str, *other_users: str) -> bool:
        """Return whether a pod with the condition DisruptionTarget was deleted by a component of the cluster, or by one
        of these other users. Without an audit log, the condition is trusted."""
        if self.deleted_by is None:
            return True
        return any(users.is_component(user) or user in other_users for user in self.deleted_by.get(pod, ()))
