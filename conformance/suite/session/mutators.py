"""Detect that the implementation makes the API server change other clients' writes (`conformance/cluster/mutating.py`).

The audit log shows such objects as soon as they are written. Deleted objects still count, because they may have had an
effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from conformance.cluster import mutating, users
from conformance.cluster.audit import READ_VERBS, AuditedRequest, AuditLog, AuditTail
from conformance.cluster.audit_losses import AuditLosses
from conformance.grove.fields import at, name, text
from conformance.implementation import installer
from conformance.implementation.descriptor import Descriptor
from kube.resource import CRDS


class Mutators:
    """The mutating webhooks, policies and conversions of one cluster: those in the audit log after a mark, and those
    that a descriptor declares."""

    def __init__(self, audit: AuditLog, mark: int, judged: Descriptor, losses: AuditLosses) -> None:
        self._tail, self._losses = AuditTail(audit, mark), losses
        declared = installer.declared_objects(judged)
        self._converted_crds = {name(crd) for crd in declared if at(crd, "spec", "conversion", "strategy") == "Webhook"}
        """CRDs whose conversion the descriptor declares."""
        webhooks = (manifest for manifest in declared if manifest["kind"] != CRDS.kind)
        self._violation = next(
            (_message(manifest, effect) for manifest in webhooks if (effect := mutating.forbidden_effect(manifest))),
            "",
        )

    def violation(self) -> str:
        """Return a message about the first forbidden mutator so far, or about a write that is missing in the audit log;
        empty if there is none."""
        for request in self._tail.poll():
            is_write = request.verb not in READ_VERBS and request.code < 300 and not request.dry_run
            if not self._violation and is_write and request.resource in mutating.PLURALS:
                self._violation = self._violation_by(request)
        return self._violation or self._losses.first()

    def _violation_by(self, request: AuditedRequest) -> str:
        if request.user == users.SUITE or not request.answer:
            return ""
        stored = orjson.loads(request.answer)
        effect = mutating.forbidden_effect(stored)
        if not effect or (stored["kind"] == CRDS.kind and name(stored) in self._converted_crds):
            return ""
        return f"{_message(stored, effect)}: the user {request.user} has written it"


def _message(obj: Mapping[str, Any], effect: str) -> str:
    return f"the {text(obj, 'kind')} {name(obj)} {effect}"
