"""Judging the answers to dry-run requests.

Whether a request is refused is one thing, and decides the requirement of its manifest; where the refusal points is
another, and judged in requirements of its own (`NAMING`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.grove.admission import durations, manifests
from conformance.grove.admission.defaults import without_coherent
from conformance.grove.admission.manifests import ACCEPTED, Error, Manifest
from conformance.grove.refusals import FieldError
from conformance.suite.scenes.case import Case
from conformance.suite.scenes.dry_run import Reply, Request
from conformance.suite.scenes.scene_environment import SceneEnvironment
from conformance.testing.topology_bindings import topology_binding

LEVELS = {"zone": "topology.kubernetes.io/zone", "rack": "example.com/rack", "host": "kubernetes.io/hostname"}
BINDINGS = "clustertopologybindings"

NAMED = "ADM-043"
"""Judges where the refusals of all manifests point."""
NAMING = (NAMED, "ADM-041", "ADM-044")
"""Requirements about the fields that a refusal names."""
SHADED = frozenset({"Invalid", "Forbidden", "NotFound", "NotSupported", "TooLong"})
"""Kinds of errors between which Kubernetes draws no sharp line. A missing value is another, and so is a duplicate."""
_DENIED = re.compile(r"denied (?:the )?request")
"""How the API server says that a webhook or a ValidatingAdmissionPolicy has refused a request."""


@contextlib.contextmanager
def bound(env: SceneEnvironment, suffix: str = "") -> Iterator[str]:
    """A ClusterTopologyBinding for one scene or test, where the implementation supports topology; its name in any
    case."""
    name = env.namespace + suffix
    there = "topology" in env.implementation.features
    if there:
        env.create(topology_binding(name, LEVELS))
    try:
        yield name
    finally:
        if there:
            env.delete(BINDINGS, name)


def manifests_of(case: Case, requirement: str) -> None:
    """Judge all manifests of a requirement that say something about the implementation."""
    chosen = [m for m in manifests.load() if m.requirement == requirement]
    with _asked(case, chosen) as (words, answers):
        for manifest, reply in answers:
            wanted = _wanted(manifest)
            wrong = complaint(manifest, reply, words)
            case.expect(requirement, _what(manifest), wanted, f"{wrong}; {reply}" if wrong else wanted)


def fields_of_refusals(case: Case) -> None:
    """Judge where the refusals of single mistakes point. What is not refused is left to its own requirement."""
    chosen = [m for m in manifests.load() if m.errors and (m.requirement == NAMED or m.requirement not in NAMING)]
    with _asked(case, chosen) as (_, answers):
        for manifest, reply in answers:
            if refused(reply) or manifest.requirement == NAMED:
                wanted = f"refused ({', '.join(map(_spelled, manifest.errors))})"
                wrong = ("" if refused(reply) else "not refused") or _unnamed(manifest.errors, reply)
                case.expect(NAMED, _what(manifest), wanted, f"{wrong}; {reply}" if wrong else wanted)


def refused(reply: Reply) -> bool:
    """Return whether the request was refused with a reason, whoever did it and whatever the status: a webhook may
    answer 404 where something is missing. A 500 is no refusal, see `Reply.refused`."""
    return reply.refused or (400 <= reply.status < 500 and _DENIED.search(reply.message) is not None)


@contextlib.contextmanager
def _asked(
    case: Case, listed: Sequence[Manifest]
) -> Iterator[tuple[Mapping[str, str], Sequence[tuple[Manifest, Reply]]]]:
    """The words of these manifests, and the answers to those of them that say something about the implementation."""
    chosen = [manifest for manifest in listed if manifest.applies(case.implementation.features)]
    with bound(case) as binding, bound(case, "-other") as other:
        words = {"binding": binding, "other": other, "scheduler": case.implementation.scheduler_name}
        stored = _Stored(case, words)
        try:
            requests = [_request(case, manifest, words, stored) for manifest in chosen]
            replies = zip(chosen, case.dry_run.all(requests), strict=True)
            yield words, [(manifest, _judged(case, manifest, reply)) for manifest, reply in replies]
        finally:
            stored.clear()


def _what(manifest: Manifest) -> str:
    return f"{manifest.name} ({', '.join(manifest.rules)})"


def _judged(case: Case, manifest: Manifest, reply: Reply) -> Reply:
    """A reply without what an implementation of coherent updates may default."""
    spec = reply.object.get("spec")
    if "coherent" not in case.implementation.features or manifest.object.get("kind") != "PodCliqueSet":
        return reply
    if not reply.accepted or not isinstance(spec, dict):
        return reply
    return dataclasses.replace(reply, object={**reply.object, "spec": without_coherent(manifest.object, spec)})


class _Stored:
    """Objects that exist because updates of them are asked for; each different one once."""

    def __init__(self, case: Case, words: Mapping[str, str]) -> None:
        self._case, self._words = case, words
        self._names: list[tuple[dict[str, Any], str]] = []
        self._bindings: list[str] = []

    def name_of(self, wanted: Mapping[str, Any]) -> str:
        obj = manifests.filled(wanted, self._words)
        for known, name in self._names:
            if known == obj:
                return name
        name = f"{self._case.namespace}-{len(self._names)}" if self._is_binding(obj) else f"stored-{len(self._names)}"
        self._names.append((obj, name))
        self._case.create({**obj, "metadata": {**obj["metadata"], "name": name}})
        if self._is_binding(obj):
            self._bindings.append(name)
        return name

    def clear(self) -> None:
        """Deletes those that are not deleted with the test's namespace."""
        for name in self._bindings:
            self._case.delete(BINDINGS, name)

    def _is_binding(self, obj: Mapping[str, Any]) -> bool:
        return obj.get("kind") == "ClusterTopologyBinding"


def _request(case: Case, manifest: Manifest, words: Mapping[str, str], stored: _Stored) -> Request:
    obj = manifests.filled(manifest.object, words)
    if manifest.stored is None:
        return case.dry_run.create(obj, bare=manifest.bare)
    return case.dry_run.replace_spec({**obj, "metadata": {**obj["metadata"], "name": stored.name_of(manifest.stored)}})


def _wanted(manifest: Manifest) -> str:
    errors = ", ".join(map(_spelled, manifest.errors)) if manifest.requirement in NAMING else ""
    return f"{manifest.verdict} ({errors})" if errors else manifest.verdict


def _spelled(error: Error) -> str:
    return f"{error.at} {error.kind}".rstrip()


def complaint(manifest: Manifest, reply: Reply, words: Mapping[str, str]) -> str:
    """Return how the answer differs from what the manifest requires; empty if it does not."""
    if manifest.verdict == ACCEPTED or (manifest.verdict == "either" and reply.accepted):
        if not reply.accepted:
            return "not accepted"
        found = [f"{path} is {_at(reply, path)!r}, not {value!r}" for path, value in _wrong(manifest, reply, words)]
        found += [f"{path} is {_at(reply, path)!r}" for path in manifest.absent if _at(reply, path) is not None]
    else:
        if reply.accepted:
            return "not refused"
        if not refused(reply):
            return "no verdict"
        found = [_unnamed(manifest.errors, reply)] if manifest.requirement in NAMING else []
    found += [f"no warning about {text}" for text in manifest.warnings if not _warned(reply, text)]
    found += [f"a warning about {text}" for text in manifest.silent if _warned(reply, text)]
    return "; ".join(filter(None, found))


def _unnamed(errors: Sequence[Error], reply: Reply) -> str:
    """The errors that a refusal does not name."""
    missing = [error for error in errors if not any(_names(found, error) for found in reply.errors)]
    return "; ".join(f"no error {error.kind} at {error.at}".replace("  ", " ") for error in missing)


def _names(found: FieldError, wanted: Error) -> bool:
    """Whether an error is at the field or below it, and of a kind that says the same."""
    kinds = SHADED if wanted.kind in SHADED else {wanted.kind}
    return f".{wanted.at}." in f".{found.path}." and (not wanted.kind or found.kind in kinds)


def _warned(reply: Reply, text: str) -> bool:
    """Whether a warning is about something. Upper and lower case make no difference."""
    return any(text.lower() in warning.lower() for warning in reply.warnings)


def _wrong(manifest: Manifest, reply: Reply, words: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    for path, value in manifest.defaults.items():
        seen = _at(reply, path)
        if seen != manifests.filled(value, words) and not durations.equal(seen, value):
            yield path, value
    for path, text in manifest.written.items():
        if _at(reply, path) != text:
            yield path, text


def _at(reply: Reply, path: str) -> Any:
    return manifests.at(reply.object, path)
