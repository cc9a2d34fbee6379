"""Judgement of the replies to dry-run requests.

A manifest's main requirement passes or fails on whether the request is rejected. Whether the rejection names the right
field is judged under separate requirements (`FIELD_REQUIREMENTS`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.grove.admission import durations, manifests
from conformance.grove.admission.defaults import without_coherent_defaults
from conformance.grove.admission.manifests import ACCEPTED, Error, Manifest
from conformance.grove.refusals import FieldError
from conformance.suite.scenes.case import Case
from conformance.suite.scenes.dry_run import Reply, Request
from conformance.suite.scenes.scene_environment import SceneEnvironment
from conformance.testing.topology_bindings import topology_binding

LEVELS = {"zone": "topology.kubernetes.io/zone", "rack": "example.com/rack", "host": "kubernetes.io/hostname"}
BINDINGS = "clustertopologybindings"

FIELD_REQUIREMENT = "ADM-043"
"""The requirement that judges which fields the rejections of all manifests name."""
FIELD_REQUIREMENTS = (FIELD_REQUIREMENT, "ADM-041", "ADM-044")
"""The requirements about the fields that a rejection names."""
EQUIVALENT_ERROR_TYPES = frozenset({"Invalid", "Forbidden", "NotFound", "NotSupported", "TooLong"})
"""Types of errors that Kubernetes does not strictly distinguish. Required and Duplicate are distinct types."""
_DENIED = re.compile(r"denied (?:the )?request")
"""The words with which the API server reports that a webhook or a ValidatingAdmissionPolicy has rejected a request."""


@contextlib.contextmanager
def cluster_topology_binding(env: SceneEnvironment, suffix: str = "") -> Iterator[str]:
    """Create a ClusterTopologyBinding for one scene or test if the implementation supports topology. Yield the name
    whether or not the binding was created."""
    name = env.namespace + suffix
    topology_supported = "topology" in env.implementation.features
    if topology_supported:
        env.create(topology_binding(name, LEVELS))
    try:
        yield name
    finally:
        if topology_supported:
            env.delete(BINDINGS, name)


def judge_manifests(case: Case, requirement: str) -> None:
    """Judge all manifests of a requirement that apply to the implementation."""
    chosen = [m for m in manifests.load() if m.requirement == requirement]
    with _dry_run(case, chosen) as (placeholders, replies_by_manifest):
        for manifest, reply in replies_by_manifest:
            expected = _expected(manifest)
            difference = find_difference(manifest, reply, placeholders)
            case.expect(requirement, _title(manifest), expected, f"{difference}; {reply}" if difference else expected)


def judge_fields_of_refusals(case: Case) -> None:
    """Judge which fields the rejections of single mistakes name. A manifest that is wrongly accepted is covered by its
    own requirement."""
    chosen = [
        m
        for m in manifests.load()
        if m.errors and (m.requirement == FIELD_REQUIREMENT or m.requirement not in FIELD_REQUIREMENTS)
    ]
    with _dry_run(case, chosen) as (_, replies_by_manifest):
        for manifest, reply in replies_by_manifest:
            if is_refused(reply) or manifest.requirement == FIELD_REQUIREMENT:
                expected = f"refused ({', '.join(map(_error_text, manifest.errors))})"
                difference = ("" if is_refused(reply) else "not refused") or _unnamed_errors(manifest.errors, reply)
                case.expect(
                    FIELD_REQUIREMENT, _title(manifest), expected, f"{difference}; {reply}" if difference else expected
                )


def is_refused(reply: Reply) -> bool:
    """Return whether a request was rejected by the API server, or denied by a webhook or a policy with any 4xx status.
    A webhook may return 404 if a referenced object is missing. A 500 is not a rejection (see `Reply.refused`)."""
    return reply.refused or (400 <= reply.status < 500 and _DENIED.search(reply.message) is not None)


@contextlib.contextmanager
def _dry_run(
    case: Case, candidates: Sequence[Manifest]
) -> Iterator[tuple[Mapping[str, str], Sequence[tuple[Manifest, Reply]]]]:
    """Yield the values of the placeholders, and the replies to the manifests that apply to the implementation."""
    chosen = [manifest for manifest in candidates if manifest.applies(case.implementation.features)]
    with cluster_topology_binding(case) as binding, cluster_topology_binding(case, "-other") as other:
        placeholders = {"binding": binding, "other": other, "scheduler": case.implementation.scheduler_name}
        stored = _Stored(case, placeholders)
        try:
            requests = [_request(case, manifest, placeholders, stored) for manifest in chosen]
            replies = zip(chosen, case.dry_run.all(requests), strict=True)
            yield (
                placeholders,
                [(manifest, _without_coherent_defaults(case, manifest, reply)) for manifest, reply in replies],
            )
        finally:
            stored.delete_bindings()


def _title(manifest: Manifest) -> str:
    return f"{manifest.name} ({', '.join(manifest.rules)})"


def _without_coherent_defaults(case: Case, manifest: Manifest, reply: Reply) -> Reply:
    """Return a reply without the defaults that an implementation may set for coherent updates."""
    spec = reply.object.get("spec")
    if "coherent" not in case.implementation.features or manifest.object.get("kind") != "PodCliqueSet":
        return reply
    if not reply.accepted or not isinstance(spec, dict):
        return reply
    return dataclasses.replace(reply, object={**reply.object, "spec": without_coherent_defaults(manifest.object, spec)})


class _Stored:
    """The objects that are created so that their updates can be requested. Equal objects are created only once."""

    def __init__(self, case: Case, placeholders: Mapping[str, str]) -> None:
        self._case, self._placeholders = case, placeholders
        self._names: list[tuple[dict[str, Any], str]] = []
        self._bindings: list[str] = []

    def create_once(self, template: Mapping[str, Any]) -> str:
        obj = manifests.filled(template, self._placeholders)
        for existing, name in self._names:
            if existing == obj:
                return name
        name = f"{self._case.namespace}-{len(self._names)}" if self._is_binding(obj) else f"stored-{len(self._names)}"
        self._names.append((obj, name))
        self._case.create({**obj, "metadata": {**obj["metadata"], "name": name}})
        if self._is_binding(obj):
            self._bindings.append(name)
        return name

    def delete_bindings(self) -> None:
        """Delete the objects that are not deleted together with the test's namespace."""
        for name in self._bindings:
            self._case.delete(BINDINGS, name)

    def _is_binding(self, obj: Mapping[str, Any]) -> bool:
        return obj.get("kind") == "ClusterTopologyBinding"


def _request(case: Case, manifest: Manifest, placeholders: Mapping[str, str], stored: _Stored) -> Request:
    obj = manifests.filled(manifest.object, placeholders)
    if manifest.stored_object is None:
        return case.dry_run.create(obj, bare=manifest.bare)
    return case.dry_run.replace_spec(
        {**obj, "metadata": {**obj["metadata"], "name": stored.create_once(manifest.stored_object)}}
    )


def _expected(manifest: Manifest) -> str:
    errors = ", ".join(map(_error_text, manifest.errors)) if manifest.requirement in FIELD_REQUIREMENTS else ""
    return f"{manifest.verdict} ({errors})" if errors else manifest.verdict


def _error_text(error: Error) -> str:
    return f"{error.at} {error.kind}".rstrip()


def find_difference(manifest: Manifest, reply: Reply, placeholders: Mapping[str, str]) -> str:
    """Return how a reply differs from the verdict and values that the manifest requires, or an empty string if it does
    not differ."""
    if manifest.verdict == ACCEPTED or (manifest.verdict == "either" and reply.accepted):
        if not reply.accepted:
            return "not accepted"
        differences = [
            f"{path} is {_at(reply, path)!r}, not {value!r}"
            for path, value in _wrong_values(manifest, reply, placeholders)
        ]
        differences += [f"{path} is {_at(reply, path)!r}" for path in manifest.absent if _at(reply, path) is not None]
    else:
        if reply.accepted:
            return "not refused"
        if not is_refused(reply):
            return "no verdict"
        differences = [_unnamed_errors(manifest.errors, reply)] if manifest.requirement in FIELD_REQUIREMENTS else []
    differences += [f"no warning about {text}" for text in manifest.warnings if not _has_warning(reply, text)]
    differences += [f"a warning about {text}" for text in manifest.silent if _has_warning(reply, text)]
    return "; ".join(filter(None, differences))


def _unnamed_errors(errors: Sequence[Error], reply: Reply) -> str:
    """Return a description of the expected errors that a rejection does not contain."""
    missing = [error for error in errors if not any(_matches(observed, error) for observed in reply.errors)]
    return "; ".join(f"no error {error.kind} at {error.at}".replace("  ", " ") for error in missing)


def _matches(observed: FieldError, expected: Error) -> bool:
    """Return whether an observed error is at or below the expected field and has an equivalent type."""
    kinds = EQUIVALENT_ERROR_TYPES if expected.kind in EQUIVALENT_ERROR_TYPES else {expected.kind}
    return f".{expected.at}." in f".{observed.path}." and (not expected.kind or observed.kind in kinds)


def _has_warning(reply: Reply, text: str) -> bool:
    """Return whether a warning contains this text, ignoring case."""
    return any(text.lower() in warning.lower() for warning in reply.warnings)


def _wrong_values(manifest: Manifest, reply: Reply, placeholders: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """Yield each path whose value differs from the expected value, with the expected value."""
    for path, value in manifest.defaults.items():
        observed = _at(reply, path)
        if observed != manifests.filled(value, placeholders) and not durations.equal(observed, value):
            yield path, value
    for path, text in manifest.written.items():
        if _at(reply, path) != text:
            yield path, text


def _at(reply: Reply, path: str) -> Any:
    return manifests.at(reply.object, path)
