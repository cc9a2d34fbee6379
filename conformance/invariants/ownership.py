"""INV-004: every object has a controller reference that leads to its PodCliqueSet (CHG-DEL-04, OBJ-211 … OBJ-215)."""

from __future__ import annotations

from conformance.grove import pods
from conformance.grove.fields import controller, label, terminating, text
from conformance.grove.labels import MANAGED_BY, OPERATOR
from conformance.history.gangs import Gangs
from conformance.history.origins import Origins
from conformance.history.record import DELETED, Record
from conformance.invariants.invariant import Invariant, Violation

CONTROLLERS = {
    "pods": ("podcliques",),
    "podcliques": ("podcliquescalinggroups", "podcliquesets"),
    "podcliquescalinggroups": ("podcliquesets",),
    "podgangs": ("podcliquesets", "podgangmaps"),
    "podgangmaps": ("podcliquesets",),
}
"""Resource → the resources whose objects may control its objects."""
JUDGED_RESOURCES = ("pods", "podcliques", "podcliquescalinggroups", "podgangs")


class Ownership(Invariant):
    """INV-004. Judged for objects of operators. References that are removed because the owner is deleted with orphan
    propagation are not violations."""

    id = "INV-004"
    statement = "every pod, clique, scaling group and gang has a controller reference that leads up to the PodCliqueSet"

    def __init__(self, origins: Origins) -> None:
        super().__init__()
        self._origins = origins
        self._objects: dict[str, tuple[str, str]] = {}
        """UID → resource and name."""
        self._owners: dict[str, dict[str, Record]] = {}
        """UID → the UID of each controller that the object has had ("" for none), with the first record that showed
        that controller."""
        self._terminating: set[str] = set()

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Track each object and its controllers, which are judged at the end."""
        if record.resource != "podcliquesets" and record.resource not in CONTROLLERS:
            return
        self._objects[record.uid] = (record.resource, record.name)
        if record.kind == DELETED or terminating(record.object):
            self._terminating.add(record.uid)
        if record.resource in CONTROLLERS and record.kind != DELETED and self._is_made_by_operator(record):
            known_owners = self._owners.setdefault(record.uid, {})
            owner = text(controller(record.object), "uid")
            was_removed = owner == "" and (
                record.uid in self._origins.stripped or any(uid in self._terminating for uid in known_owners)
            )
            if owner not in known_owners and not was_removed:
                known_owners[owner] = record

    def _violation_at_end(self, gangs: Gangs, now: float) -> Violation | None:
        for uid in self._owners:
            for owner, record in self._owners[uid].items():
                if record.resource not in JUDGED_RESOURCES:
                    continue
                problem = self._problem(record.resource, owner)
                if problem:
                    return f"{record.resource}/{record.name} {problem}", (record,)
        return None

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        judged = any(self._objects[uid][0] in JUDGED_RESOURCES for uid in self._owners)
        return "" if judged else "an operator made nothing"

    def _problem(self, resource: str, owner: str) -> str:
        """Return a message about what is wrong with the controller whose UID is `owner`, or with the controllers above
        it up to the set; empty if nothing is wrong."""
        if not owner:
            return "has no controller reference"
        if owner not in self._objects:
            return f"is controlled by an object that never existed here (uid {owner})"
        owner_resource, name = self._objects[owner]
        if owner_resource not in CONTROLLERS[resource]:
            return f"is controlled by {owner_resource}/{name}"
        if owner_resource == "podcliquesets":
            return ""
        for owner_uid in self._owners.get(owner, {"": None}):
            problem = self._problem(owner_resource, owner_uid)
            if problem:
                return f"is controlled by {owner_resource}/{name}, which {problem}"
        return ""

    def _is_made_by_operator(self, record: Record) -> bool:
        if record.resource == "pods":
            return pods.is_of_grove(record.object)
        return label(record.object, MANAGED_BY) == OPERATOR or bool(controller(record.object))
