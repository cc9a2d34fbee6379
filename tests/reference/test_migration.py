"""Tests of each write of a hash migration on an in-memory API server. The next operator completes an interrupted
migration, and only hashes are written."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from typing import Any

import msgspec
import orjson
import pytest

from kube.errors import ApiError
from kube.objects import Key
from kube.resource import Resource
from reference_impl.api.models import PodCliqueScalingGroup, PodCliqueSet, to_json
from reference_impl.control.cache import Cache
from reference_impl.control.last_errors import LastErrors
from reference_impl.control.metrics import OperatorMetrics
from reference_impl.control.migration import EVENT, HashMigration
from reference_impl.control.writer import Writer
from reference_impl.plan import children, hashes, labels, maps
from reference_impl.plan.coherent import versions
from reference_impl.plan.hashing.schemes import SCHEMES
from reference_impl.plan.hashing.window import Policy
from reference_impl.plan.layout import Entry
from reference_impl.plan.lines import NAMES
from reference_impl.plan.maps import StoredMap
from tests.reference.examples import disaggregated, members

OLD, NEW = Policy(SCHEMES["legacy-0.34"], ()), Policy()
UNSORTED = {"containers": [{"name": "sidecar"}, {"name": "main"}]}
Objects = dict[tuple[str, str], dict[str, Any]]


class Death(Exception):
    """The process ended before it received the response."""


class Memory:
    """The part of a client that a migration uses: patches and events. The client dies with its `k`-th write."""

    def __init__(self, objects: Objects, k: int = 0) -> None:
        self.objects, self.k, self.writes = objects, k, 0
        self.events: list[dict[str, Any]] = []

    async def patch(self, resource: Resource, namespace: str, name: str, body: Any, **options: Any) -> bytes:
        await asyncio.sleep(0)  # other clients may write in the meantime
        current = self.objects[resource.kind, name]
        metadata, version = body.pop("metadata", {}), current["metadata"]["resourceVersion"]
        if metadata.pop("resourceVersion", version) != version:
            raise ApiError(409, "Conflict", "", {}, None)
        metadata.pop("uid", None)
        _merge(current, {**body, "metadata": metadata})
        current["metadata"]["resourceVersion"] = str(int(version) + 1000)
        self._written()
        return orjson.dumps(current)

    async def create(self, resource: Resource, manifest: dict[str, Any]) -> bytes:
        self.events.append(manifest)
        self._written()
        return b"{}"

    def _written(self) -> None:
        self.writes += 1
        if self.writes == self.k:
            raise Death


def _merge(target: dict[str, Any], patch: dict[str, Any]) -> None:
    for key, value in patch.items():
        if isinstance(value, dict):
            _merge(target.setdefault(key, {}), value)
        elif value is None:
            target.pop(key, None)
        else:
            target[key] = value


def build_set() -> PodCliqueSet:
    pcs = disaggregated(replicas=2)
    for clique in pcs.spec.template.cliques:
        clique.spec.pod_spec = copy.deepcopy(UNSORTED)
    return pcs


def stored(policy: Policy, pcs: PodCliqueSet) -> Objects:
    """Return all objects of a set as an operator with this policy leaves them."""
    generation = hashes.generation_hashes(pcs, policy).written
    objects: Objects = {}

    def put(kind: str, document: dict[str, Any], status: dict[str, Any] | None = None) -> dict[str, Any]:
        document = copy.deepcopy(document)
        number = str(len(objects) + 1)
        document["metadata"] |= {"uid": f"uid-{number}", "resourceVersion": number}
        if status is not None:
            document["status"] = status
        objects[kind, document["metadata"]["name"]] = document
        return document

    document = to_json(pcs)
    document["metadata"]["namespace"] = "ns"
    stored_set = put("PodCliqueSet", document, {"currentGenerationHash": generation, "replicas": 2})
    pcs = msgspec.convert(stored_set, PodCliqueSet)
    manifests: list[dict[str, Any]] = []
    for index in range(2):
        standalone = children.standalone_templates(pcs)
        manifests += [children.standalone_clique(pcs, index, template, NAMES, policy=policy) for template in standalone]
        for config in children.group_configs(pcs):
            old_status = {"currentPodCliqueSetGenerationHash": generation, "replicas": 1}
            group = put("PodCliqueScalingGroup", children.scaling_group(pcs, index, config), old_status)
            scaling_group = msgspec.convert(group, PodCliqueScalingGroup)
            manifests += members(pcs, scaling_group, policy=policy)
    for index in range(2):
        put("PodGangMap", maps.manifest(pcs, index, build_map(pcs, generation, policy)))
        tags = {labels.GENERATION_HASH: generation, labels.PART_OF: pcs.metadata.name}
        metadata = {"name": f"{pcs.metadata.name}-{index}-1", "namespace": "ns", "labels": tags}
        owners = [children.set_reference(pcs)]
        put("PodGang", {"metadata": {**metadata, "ownerReferences": owners}, "spec": {"podgroups": []}})
    for manifest in manifests:
        hash = manifest["metadata"]["labels"][labels.TEMPLATE_HASH]
        old_status = {
            "currentPodTemplateHash": hash,
            "currentPodCliqueSetGenerationHash": generation,
            "readyReplicas": 1,
        }
        clique = put("PodClique", manifest, old_status)
        owner = children.owner_reference("grove.io/v1alpha1", "PodClique", _meta(clique))
        metadata = {
            "name": f"{clique['metadata']['name']}-pod",
            "namespace": "ns",
            "labels": {labels.TEMPLATE_HASH: hash},
            "ownerReferences": [owner],
        }
        put("Pod", {"metadata": metadata, "spec": {}, "status": {}})
    return objects


def build_map(pcs: PodCliqueSet, generation: str, policy: Policy) -> StoredMap:
    """Return a map with two gangs of the current generation, and one gang of an older generation that has the current
    template of all cliques but one."""
    present = versions.templates(pcs, generation, policy).hashes
    first, *_ = present
    old = {**present, first: "of-another-template"}
    generations = (("older", 0), (generation, 1), (generation, 2))
    gangs = tuple(Entry(str(number), entry_generation, cliques={first: 1}) for entry_generation, number in generations)
    return StoredMap(gangs, {generation: present, "older": old})


def _meta(document: dict[str, Any]) -> Any:
    return msgspec.convert(document, PodCliqueScalingGroup).metadata


class FakeOperator:
    """The caches and the migration of an operator whose client may die at its `k`-th write."""

    def __init__(self, objects: Objects, k: int = 0) -> None:
        self.client = Memory(objects, k)
        self.cache = Cache(self.client)  # type: ignore[arg-type]
        cache = self.cache
        informers = (cache.sets, cache.groups, cache.cliques, cache.pods, cache.maps, cache.gangs)
        self.of_kind = {informer.resource.kind: informer for informer in informers}
        self.woken: list[Key] = []
        writer = Writer(self.client, OperatorMetrics())  # type: ignore[arg-type]
        self.migration = HashMigration(self.cache, writer, self.woken.append, LastErrors(self.cache.sets, writer), NEW)
        for (kind, _), document in objects.items():
            informer = self.of_kind[kind]
            informer.observe(informer.decode(orjson.dumps(document)))

    def one(self, kind: str) -> Iterator[Any]:
        return iter(self.of_kind[kind])

    async def migrate(self) -> None:
        for pcs in self.one("PodCliqueSet"):
            await self.migration.migrate(pcs)


def without_versions(objects: Objects) -> Objects:
    plain = copy.deepcopy(objects)
    for document in plain.values():
        document["metadata"].pop("resourceVersion")
    return plain


async def test_every_hash_is_rewritten_and_nothing_else() -> None:
    old, expected = stored(OLD, build_set()), stored(NEW, build_set())
    assert without_versions(old) != without_versions(expected)
    operator = FakeOperator(old)
    await operator.migrate()
    assert without_versions(old) == without_versions(expected)
    (event,) = operator.client.events
    assert event["reason"] == EVENT
    assert "0.34" in event["note"]


async def test_the_next_operator_completes_an_interrupted_migration() -> None:
    expected = without_versions(stored(NEW, build_set()))
    uninterrupted = FakeOperator(stored(OLD, build_set()))
    await uninterrupted.migrate()
    assert uninterrupted.client.writes > 20
    for k in range(1, uninterrupted.client.writes + 1):
        objects = stored(OLD, build_set())
        with pytest.raises((Death, ExceptionGroup)):
            await FakeOperator(objects, k).migrate()
        await FakeOperator(objects).migrate()
        assert without_versions(objects) == expected, f"death at write {k}"


async def test_objects_with_foreign_hashes_wait_until_their_set_is_migrated() -> None:
    objects = stored(OLD, build_set())
    operator = FakeOperator(objects)
    (pcs,) = operator.one("PodCliqueSet")
    parts = [*operator.one("PodClique"), *operator.one("PodCliqueScalingGroup")]
    assert not any(operator.migration.is_migrated(pcs, part) for part in parts)
    assert set(operator.woken) == {pcs.metadata.key}
    await operator.migrate()
    (pcs,) = operator.one("PodCliqueSet")
    assert all(operator.migration.is_migrated(pcs, part) for part in operator.one("PodClique"))
    assert all(operator.migration.is_migrated(pcs, part) for part in operator.one("PodCliqueScalingGroup"))


async def test_migrating_a_set_with_our_own_hashes_writes_nothing() -> None:
    objects = stored(NEW, build_set())
    operator = FakeOperator(objects)
    await operator.migrate()
    assert (operator.client.writes, operator.client.events) == (0, [])


async def test_a_reordering_during_a_migration_leaves_no_unknown_hashes() -> None:
    """The operator that has started the migration still recognizes the remaining hashes of the old order (HASH-156)."""
    objects = stored(OLD, build_set())
    operator = FakeOperator(objects)
    (pcs,) = operator.one("PodCliqueSet")
    operator.migration.window(pcs).generation.foreign_scheme(pcs.status.current_generation_hash)
    document = objects["PodCliqueSet", pcs.metadata.name]
    for clique in document["spec"]["template"]["cliques"]:
        clique["spec"]["podSpec"]["containers"].reverse()
    document["metadata"] |= {"resourceVersion": "5000", "generation": 2}
    operator.cache.sets.observe(operator.cache.sets.decode(orjson.dumps(document)))
    await operator.migrate()
    written_hashes = {
        hash for template_hashes in hashes.window(pcs).templates.values() for hash in [template_hashes.written]
    }
    pods = [d for (kind, _), d in objects.items() if kind == "Pod"]
    assert {pod["metadata"]["labels"][labels.TEMPLATE_HASH] for pod in pods} <= written_hashes


async def test_a_conflict_ends_the_reconcile_and_the_next_reconcile_continues() -> None:
    objects = stored(OLD, build_set())
    operator = FakeOperator(objects)
    for document in objects.values():
        document["metadata"]["resourceVersion"] = str(int(document["metadata"]["resourceVersion"]) + 500)
    with pytest.raises(ApiError):
        await operator.migrate()
    await asyncio.sleep(0)
    second_operator = FakeOperator(objects)
    await second_operator.migrate()
    assert without_versions(objects) == without_versions(stored(NEW, build_set()))
