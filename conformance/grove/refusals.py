"""Read the fields that a rejection is about, from the message of a webhook or the causes of a schema violation.

Tests compare only the end of a field's path and the kind of error, never a whole path or message, because webhooks'
paths have doubled segments and lack indices (api.md DFT-11).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_KINDS = {
    "Required value": "Required",
    "Invalid value": "Invalid",
    "Duplicate value": "Duplicate",
    "Not found": "NotFound",
    "Unsupported value": "NotSupported",
    "Forbidden": "Forbidden",
    "Too long": "TooLong",
    "Too many": "TooMany",
}
_REASONS = {
    "FieldValueRequired": "Required",
    "FieldValueInvalid": "Invalid",
    "FieldValueTypeInvalid": "Invalid",
    "FieldValueDuplicate": "Duplicate",
    "FieldValueNotFound": "NotFound",
    "FieldValueNotSupported": "NotSupported",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "TooLong",
    "FieldValueTooMany": "TooMany",
}
_FIELD_ERROR = re.compile(rf"(?P<path>[A-Za-z_][\w.\-/\[\]]*): (?P<kind>{'|'.join(_KINDS)})(?=[:,\]]|$)")
_INDEX = re.compile(r"\[[^\]]*\]")
_ADMISSION = re.compile(
    r"""admission webhook "|failed calling webhook "|conversion webhook for |policy '[^']*' with binding"""
    r"""|AdmissionPolicy '|admission plugin "(Mutating|Validating)[A-Za-z]*" failed to complete"""
)
"""A pattern for messages of the API server about webhooks, policies and plugins that denied a request or did not
respond."""
_FORBIDDEN = re.compile(r'[\w.-]+(?: "(?:[^"\\]|\\.)*")? is forbidden: \[?')
"""The start of a message of the API server that rejects a request for one object."""
_QUOTA = re.compile(r"(?:exceeded quota|failed quota|status unknown for quota): (?P<name>[\w.-]+)")
_LIMITS = re.compile(r"(?:max|min)imum \S+ usage per |\S+ max limit to request ratio per ")
_DEFAULT_LIMITS = re.compile(r"resources\.requests: Invalid value: .*must be less than or equal to \S+ limit")
_POD_SECURITY = re.compile(r'violates PodSecurity "')
_DENIED = re.compile(
    r"""admission webhook "(?P<hook>[^"]+)" denied|olicy '(?P<policy>[^']+)' with binding '[^']*' denied"""
)


@dataclass(frozen=True)
class FieldError:
    """A field error. `path` has no indices; `raw_path` is the path as the API server writes it."""

    path: str
    kind: str
    raw_path: str = field(default="", compare=False)

    def is_at(self, leaf: str) -> bool:
        """Return whether the path ends in `leaf`, compared by whole segments."""
        return f".{self.path}".endswith(f".{leaf}")

    def __str__(self) -> str:
        return f"{self.path} {self.kind}"


def field_errors(message: str, details: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield the field errors of a Status object. Other texts are skipped."""
    causes = details.get("causes")
    if isinstance(causes, list) and causes:
        for cause in causes:
            error_kind = _REASONS.get(str(cause.get("reason"))) if isinstance(cause, Mapping) else None
            if error_kind:
                raw_path = str(cause.get("field", "")).lstrip(".")
                yield FieldError(_INDEX.sub("", raw_path), error_kind, raw_path)
        return
    for match in _FIELD_ERROR.finditer(message):
        yield FieldError(_INDEX.sub("", match["path"]), _KINDS[match["kind"]], match["path"])


def by_cluster(answer: str, test_objects: Collection[str], hooks: Collection[str], *, quoted: bool = False) -> bool:
    """Return whether the cluster itself has rejected a request: by a quota, limits, Pod Security, or one of its
    webhooks and policies (`hooks`). `test_objects`: kinds and names of quotas and limits that the test itself has
    created. `quoted`: the answer may be a part of a longer text.

    Webhooks, policies and schemas write the end of a message, and clients choose the names in it. The reason of the
    cluster directly follows the quoted name of the object."""
    if (denial := _DENIED.search(answer)) is not None:
        return (denial["hook"] or denial["policy"]) in hooks
    forbidden = _FORBIDDEN.search(answer) if quoted else _FORBIDDEN.match(answer)
    if forbidden is None:
        return False
    reason = answer[forbidden.end() :]
    if (quota := _QUOTA.match(reason)) is not None:
        return quota["name"] not in test_objects
    if _LIMITS.match(reason) is not None:
        return "LimitRange" not in test_objects
    return _POD_SECURITY.match(reason) is not None


def by_default_limits(answer: str) -> bool:
    """Return whether a pod requests more than its limit, as happens if a LimitRange adds a small default limit."""
    return _DEFAULT_LIMITS.search(answer) is not None


def by_webhook(answer: str) -> bool:
    """Return whether a response of the API server names a webhook or an admission policy as its cause."""
    return _ADMISSION.search(answer) is not None
