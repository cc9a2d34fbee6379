"""Detect that the implementation lets the API server change the writes of others (`conformance/cluster/mutating.py`).

The audit log has it as soon as it happens. Nothing is forgotten: an object that is deleted again has had its effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from conformance.cluster import mutating, users
from conformance.cluster.audit import READS, AuditedRequest, AuditLog, AuditTail
from conformance.cluster.audit_losses import AuditLosses
from conformance.grove.fields import at, name, text
from conformance.implementation import installer
from conformance.implementation.descriptor import Descriptor
from kube.resource import CRDS


class Mutators:
    """The mutators of one cluster, as the audit log has them from a mark on, and as a descriptor declares them."""

    def __init__(self, audit: AuditLog, begin: int, judged: Descriptor, losses: AuditLosses) -> None:
        self._tail, self._losses = AuditTail(audit, begin), losses
        declared = installer.declared(judged)
        self._converting = {name(crd) for crd in declared if at(crd, "spec", "conversion", "strategy") == "Webhook"}
        """CRDs whose conversion the descriptor declares."""
        webhooks = (manifest for manifest in declared if manifest["kind"] != CRDS.kind)
        self._violation = next(
            (_sentence(manifest, effect) for manifest in webhooks if (effect := mutating.effect(manifest))), ""
        )

    def violation(self) -> str:
        """Return the first one so far that does what no implementation may have done, or a write that is missing in the
        audit log, as a sentence; empty for none."""
        for request in self._tail.poll():
            writes = request.verb not in READS and request.code < 300 and not request.dry_run
            if not self._violation and writes and request.resource in mutating.PLURALS:
                self._violation = self._of(request)
        return self._violation or self._losses.first()

    def _of(self, request: AuditedRequest) -> str:
        if request.user == users.SUITE or not request.answer:
            return ""
        stored = orjson.loads(request.answer)
        effect = mutating.effect(stored)
        if not effect or (stored["kind"] == CRDS.kind and name(stored) in self._converting):
            return ""
        return f"{_sentence(stored, effect)}: the user {request.user} has written it"


def _sentence(obj: Mapping[str, Any], effect: str) -> str:
    return f"the {text(obj, 'kind')} {name(obj)} {effect}"
