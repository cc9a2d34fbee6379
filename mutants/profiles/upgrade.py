"""Mutants of an operator that takes over from another operator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace as changed
from typing import Any

import msgspec

from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace
from reference_impl.api.models import (
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    PodCliqueSetStatus,
    ScalingGroupStatus,
)
from reference_impl.control.migration import HashMigration, Write
from reference_impl.plan import hashes, migration, revisions, statuses, update_set_replicas
from reference_impl.plan.children import CliqueOf
from reference_impl.plan.hashing.schemes import SCHEMES, Scheme
from reference_impl.plan.hashing.window import STANDARD, CurrentHashes, Policy, Window
from reference_impl.runtime import configuration


def _recognize_only(*names: str) -> None:
    """Recognize only the configured hash schemes with these names."""
    original = vars(configuration.Hashes)["policy"].fget

    def policy(self: configuration.Hashes) -> Policy:
        result: Policy = original(self)
        return changed(result, recognised=tuple(scheme for scheme in result.recognised if scheme.name in names))

    replace(configuration.Hashes, "policy", property(policy))


@mutant("operator", "recognizes only its own hashes", *("UPG-001", "UPG-005", "UPG-006", "UPG-009", "UPG-016"))
def _upgrade_no_window() -> None:
    _recognize_only()


@mutant("operator", "recognizes only legacy hashes of libraries 0.34", "UPG-005", "UPG-016")
def _upgrade_oldest_only() -> None:
    _recognize_only("legacy-0.34")


@mutant("operator", "recognizes only legacy hashes of the newest libraries", "UPG-001", "UPG-016")
def _upgrade_own_libraries_only() -> None:
    _recognize_only("legacy-0.36")


@mutant("operator", "recognizes canonical hashes of all libraries but no legacy ones", "UPG-001", "UPG-006")
def _upgrade_canonical_only() -> None:
    _recognize_only(*(name for name in SCHEMES if name.startswith("canonical")))


@mutant("operator", "overwrites every stored hash with its own", "UPG-007", "UPG-008")
@instead_of(CurrentHashes, "foreign_scheme")
def _upgrade_adopts_all(self: CurrentHashes, stored: str | None) -> Scheme | None:
    return None if not stored or stored == self.written else SCHEMES["legacy-0.34"]


@mutant("operator", "recognizes legacy hashes of a set but updates it all the same", "UPG-002")
def _upgrade_starts_update() -> None:
    original, original_progress, recognized = HashMigration.migrate, update_set_replicas.progress, set[str]()

    async def migrate(self: HashMigration, pcs: PodCliqueSet) -> PodCliqueSet:
        stored = pcs.status.current_generation_hash if pcs.status else None
        if self.window(pcs).generation.foreign_scheme(stored) is not None:
            recognized.add(pcs.metadata.uid)
        return await original(self, pcs)

    def progress(pcs: PodCliqueSet, generation: Any, cliques: Any, now: str) -> Any:
        if pcs.metadata.uid in recognized:
            recognized.remove(pcs.metadata.uid)
            return update_set_replicas.started_progress(pcs, now)
        return original_progress(pcs, generation, cliques, now)

    replace(HashMigration, "migrate", migrate)
    replace(update_set_replicas, "progress", progress)


def _skip_labels_of(kind: str) -> None:
    """Do not migrate the hash labels of objects of this kind."""
    original = HashMigration._label_writes

    def label(self: HashMigration, informer: Any, item: Any, current_hashes: CurrentHashes) -> Iterator[Write]:
        if informer.resource.kind != kind:
            yield from original(self, informer, item, current_hashes)

    replace(HashMigration, "_label_writes", label)


@mutant("operator", "does not migrate the labels of pods", "UPG-002", "UPG-006")
def _upgrade_pods_left() -> None:
    _skip_labels_of("Pod")


@mutant("operator", "does not migrate the labels of cliques", "UPG-002", "UPG-006")
def _upgrade_cliques_left() -> None:
    _skip_labels_of("PodClique")


@mutant("operator", "migrates standalone cliques but no members of groups", "UPG-002", "UPG-006")
@around(HashMigration, "_clique_writes")
def _upgrade_members_left(
    original: Original, self: HashMigration, window: Window, pcs: PodCliqueSet, clique: PodClique
) -> Iterator[Write]:
    controller = clique.metadata.controller
    if controller is not None and controller.uid == pcs.metadata.uid:
        yield from original(self, window, pcs, clique)


@mutant("operator", "does not migrate the statuses of scaling groups", "UPG-002", "UPG-006")
def _upgrade_groups_left() -> None:
    def of_group(self: HashMigration, window: Window, group: PodCliqueScalingGroup) -> Iterator[Write]:
        yield from ()

    original = statuses.group_status

    def group_status(
        group: PodCliqueScalingGroup, pcs: PodCliqueSet | None, clique: CliqueOf, now: str
    ) -> ScalingGroupStatus:
        result = original(group, pcs, clique, now)
        stored = group.status.current_pod_clique_set_generation_hash if group.status else None
        if stored and pcs is not None and hashes.generation_hashes(pcs).foreign_scheme(stored):
            result.current_pod_clique_set_generation_hash = stored
        return result

    replace(HashMigration, "_group_writes", of_group)
    replace(statuses, "group_status", group_status)


@mutant("operator", "accepts the legacy hash of a set without migrating it", "UPG-002", "UPG-006")
def _upgrade_set_left() -> None:
    replace(migration, "set_status", lambda window, status: status)
    original = revisions.set_revision

    def of_set(pcs: PodCliqueSet, policy: Policy = STANDARD) -> revisions.Revision:
        result = original(pcs, policy)
        stored = pcs.status.current_generation_hash if pcs.status else None
        return revisions.Revision(stored, result.accepted) if stored and result.has(stored) else result

    replace(revisions, "set_revision", of_set)


@mutant("operator", "migrates the status of a set without its update", "UPG-017")
@around(migration, "set_status")
def _upgrade_forgets_the_update(original: Original, window: Window, status: PodCliqueSetStatus) -> PodCliqueSetStatus:
    return msgspec.structs.replace(original(window, status), update_progress=None)


@mutant("operator", "deletes pods with legacy hashes instead of migrating them", "UPG-001")
@around(HashMigration, "_label_writes")
def _upgrade_recreates_pods(
    original: Original, self: HashMigration, informer: Any, item: Any, current_hashes: CurrentHashes
) -> Iterator[Write]:
    for write in original(self, informer, item, current_hashes):
        if informer.resource.kind == "Pod":
            yield lambda: self._writer.delete(informer, item)
        else:
            yield write


def _never_updates(*, only_earlier: bool) -> None:
    original = revisions.set_revision

    def of_set(pcs: PodCliqueSet, policy: Policy = STANDARD) -> revisions.Revision:
        stored = pcs.status.current_generation_hash if pcs.status else None
        if not stored or (only_earlier and policy.recognised):
            return original(pcs, policy)
        return revisions.Revision(stored, frozenset({stored}))

    replace(revisions, "set_revision", of_set)


@mutant("operator", "ignores a set whose generation hash it does not recognize", "UPG-008")
def _upgrade_never_updates() -> None:
    _never_updates(only_earlier=False)


@mutant("operator", "as the earlier version, ignores newer hashes", "UPG-004")
def _upgrade_no_way_back() -> None:
    _never_updates(only_earlier=True)


@mutant("operator", "treats hashes of earlier contents as current after a migration", "UPG-003")
@instead_of(CurrentHashes, "keep_recognizing")
def _upgrade_keeps_earlier(self: CurrentHashes, earlier: CurrentHashes) -> None:
    self._recognised = {**earlier._recognised, **earlier.foreign_hashes, earlier.written: SCHEMES["legacy-0.34"]}
