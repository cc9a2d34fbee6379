"""The result of a webhook."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from reference_impl.admission.errors import FieldError, aggregate

_STATUS = {400: "BadRequest", 403: "Forbidden", 500: "InternalError"}


@dataclass(frozen=True)
class AdmissionResult:
    """The result of a webhook. The request is allowed unless there are errors or a `refusal`. `code` is the HTTP status
    of a rejection."""

    errors: Sequence[FieldError] = ()
    warnings: Sequence[str] = ()
    refusal: str = ""
    code: int = 403
    patch: Sequence[Mapping[str, Any]] = field(default_factory=list)

    @property
    def allowed(self) -> bool:
        """Whether the request is allowed."""
        return not self.errors and not self.refusal

    def response(self, uid: str) -> dict[str, Any]:
        """Return the response to the API server (ADM-05, ADM-06)."""
        answer: dict[str, Any] = {"uid": uid, "allowed": self.allowed}
        if not self.allowed:
            message = self.refusal or aggregate(self.errors)
            answer["status"] = {"code": self.code, "reason": _STATUS[self.code], "message": message}
        elif self.patch:
            answer["patchType"] = "JSONPatch"
            answer["patch"] = base64.b64encode(orjson.dumps(list(self.patch))).decode()
        if self.warnings:
            answer["warnings"] = list(dict.fromkeys(self.warnings))
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}
