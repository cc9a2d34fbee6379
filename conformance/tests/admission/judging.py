"""Judging the answers to dry-run requests."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from conformance.grove.admission import manifests
from conformance.grove.admission.defaults import without_coherent
from conformance.grove.admission.manifests import ACCEPTED, Manifest
from conformance.suite.case import Case
from conformance.suite.dry_run import Reply, Request
from conformance.suite.scene_environment import SceneEnvironment
from conformance.testing.topology_bindings import topology_binding

LEVELS = {"zone": "topology.kubernetes.io/zone", "rack": "example.com/rack", "host": "kubernetes.io/hostname"}
BINDINGS = "clustertopologybindings"


@contextlib.contextmanager
def bound(env: SceneEnvironment, *, wanted: bool = True) -> Iterator[str]:
    """A ClusterTopologyBinding for one scene or test, where the implementation supports topology; its name in any
    case."""
    there = wanted and "topology" in env.implementation.features
    if there:
        env.create(topology_binding(env.namespace, LEVELS))
    try:
        yield env.namespace
    finally:
        if there:
            env.delete(BINDINGS, env.namespace)


def manifests_of(case: Case, requirement: str) -> None:
    """Judges all manifests of a requirement that say something about the implementation."""
    chosen = [m for m in manifests.load() if m.requirement == requirement and m.applies(case.implementation.features)]
    with bound(case) as binding:
        words = {"binding": binding, "scheduler": case.implementation.scheduler_name}
        stored = _Stored(case, words)
        try:
            requests = [_request(case, manifest, words, stored) for manifest in chosen]
            for manifest, reply in zip(chosen, case.dry_run.all(requests), strict=True):
                what = f"{manifest.name} ({', '.join(manifest.rules)})"
                wanted = _wanted(manifest)
                wrong = complaint(manifest, _judged(case, manifest, reply), words)
                case.expect(requirement, what, wanted, f"{wrong}; {reply}" if wrong else wanted)
        finally:
            stored.clear()


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
        return case.dry_run.create(obj)
    return case.dry_run.replace_spec({**obj, "metadata": {**obj["metadata"], "name": stored.name_of(manifest.stored)}})


def _wanted(manifest: Manifest) -> str:
    errors = ", ".join(f"{error.at} {error.kind}".rstrip() for error in manifest.errors)
    return f"{manifest.verdict} ({errors})" if errors else manifest.verdict


def complaint(manifest: Manifest, reply: Reply, words: Mapping[str, str]) -> str:
    """What is not as the manifest wants it; empty where all is."""
    if manifest.verdict == ACCEPTED or (manifest.verdict == "either" and reply.accepted):
        if not reply.accepted:
            return "not accepted"
        found = [f"{path} is {_at(reply, path)!r}, not {value!r}" for path, value in _wrong(manifest, reply, words)]
        found += [f"{path} is {_at(reply, path)!r}" for path in manifest.absent if _at(reply, path) is not None]
    else:
        if reply.accepted:
            return "not refused"
        if not reply.refused:
            return "no verdict"
        found = [
            f"no error {error.kind} at {error.at}".replace("  ", " ")
            for error in manifest.errors
            if not any(e.is_at(error.at) and error.kind in ("", e.kind) for e in reply.errors)
        ]
    found += [f"no warning about {text}" for text in manifest.warnings if not any(text in w for w in reply.warnings)]
    found += [f"a warning about {text}" for text in manifest.silent if any(text in w for w in reply.warnings)]
    return "; ".join(found)


def _wrong(manifest: Manifest, reply: Reply, words: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    for path, value in manifest.defaults.items():
        if _at(reply, path) != manifests.filled(value, words):
            yield path, value


def _at(reply: Reply, path: str) -> Any:
    return manifests.at(reply.object, path)
