"""Objects and patches that several scenes of this profile use."""

from __future__ import annotations

from conformance.grove import labels
from conformance.suite.scenes.api import Object

OTHER_SPEC = {"devices": {"requests": [{"name": "other", "exactly": {"deviceClassName": "other.example.com"}}]}}
"""A spec of ResourceClaims that differs from the claim templates of every workload."""


def trigger(value: str) -> Object:
    """Return a patch that makes an operator reconcile a set (OBJ-233)."""
    return {"metadata": {"annotations": {labels.TRIGGER: value}}}
