"""Authorization of changes to managed objects (AUTH-01 to AUTH-10). The functions are pure: callers pass in the state
of the cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from reference_impl.admission.result import AdmissionResult
from reference_impl.plan import labels

DISABLE_PROTECTION_ANNOTATION = "grove.io/disable-managed-resource-protection"


def _metadata(document: Any) -> Mapping[str, Any]:
    metadata = document.get("metadata") if isinstance(document, Mapping) else None
    return metadata if isinstance(metadata, Mapping) else {}


def _text(value: Any, key: str) -> str:
    text = value.get(key) if isinstance(value, Mapping) else None
    return text if isinstance(text, str) else ""


def object_metadata(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata of the object before the request, or of the object to be created (AUTH-04)."""
    return _metadata(request.get("object" if request.get("operation") == "CREATE" else "oldObject"))


def find_parent_set(request: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the namespace and name of the set that a managed object belongs to, or None if the object does not name a
    set."""
    metadata = object_metadata(request)
    name = _text(metadata.get("labels"), labels.PART_OF)
    return (_text(metadata, "namespace") or _text(request, "namespace"), name) if name else None


def judge(request: Mapping[str, Any], pcs: Mapping[str, Any] | None, allowed: Collection[str]) -> AdmissionResult:
    """Judge a request. `pcs` is the set that `find_parent_set` names, if it exists, and `allowed` holds the names of
    exempt users."""
    operation = request.get("operation")
    metadata = object_metadata(request)
    full_name = f"{_text(metadata, 'namespace') or _text(request, 'namespace')}/"
    full_name += _text(metadata, "name") or _text(request, "name")
    if operation == "CONNECT":
        return AdmissionResult()
    parent_key = find_parent_set(request)
    if parent_key is None:
        problem = f"missing required label {labels.PART_OF} on resource {full_name}"
        return AdmissionResult(warnings=[f"{problem}, could not determine parent PodCliqueSet"])
    if pcs is None:
        return AdmissionResult(warnings=[f"parent PodCliqueSet {parent_key[1]} not found for resource: {full_name}"])
    if _text(_metadata(pcs).get("annotations"), DISABLE_PROTECTION_ANNOTATION) == "true":
        return AdmissionResult()
    if _text(request.get("userInfo"), "username") in allowed:
        return AdmissionResult()
    if operation == "DELETE":
        if _text(request.get("kind"), "kind") == "Pod":
            return AdmissionResult()
        return AdmissionResult(refusal=f"admission denied, deletion of resource: {full_name} is not allowed")
    if operation in ("CREATE", "UPDATE"):
        return AdmissionResult(refusal=f"admission denied, creation/updation of resource: {full_name} is not allowed")
    return AdmissionResult(refusal="Unhandled operation. Admission denied.")
