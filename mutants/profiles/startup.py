"""Mutants of the startup order."""

from __future__ import annotations

from typing import Any

from kube.objects import Key
from mutants.registry import mutant
from mutants.replacement import Original, around, replace
from reference_impl.api.models import StartupType
from reference_impl.control.podclique import CliqueContext, CliqueReconciler
from reference_impl.plan import startup
from reference_impl.plan.layout import EntryGang


@mutant("operator", "starts cliques in the reverse order", "START-002", "START-003", "START-015", "INV-006")
@around(startup, "_predecessors")
def _start_backwards(original: Original, pcs: Any, *rest: Any) -> list[str]:
    every = pcs.spec.template.cliques
    pcs.spec.template.cliques = every[::-1]
    result = original(pcs, *rest)
    pcs.spec.template.cliques = every
    return result


@mutant("operator", "treats InOrder as AnyOrder", "START-002", "START-003", "START-011", "INV-006")
@around(startup, "_predecessors")
def _in_order_ignored(original: Original, pcs: Any, *rest: Any) -> list[str]:
    return [] if pcs.spec.template.clique_startup_type == StartupType.IN_ORDER else original(pcs, *rest)


@mutant("operator", "applies startsAfter without the explicit startup order", "START-001")
@around(startup, "_predecessors")
def _any_order_ordered(original: Original, pcs: Any, template: Any, *rest: Any) -> list[str]:
    any_order = pcs.spec.template.clique_startup_type == StartupType.ANY_ORDER
    return template.spec.starts_after or [] if any_order else original(pcs, template, *rest)


@mutant("operator", "passes no counts to the init container", "START-007", "START-011")
@around(startup, "container")
def _count_missing(original: Original, waits: Any, image: str) -> dict[str, Any]:
    return {**original(waits, image), "args": [f"--podcliques={parent}" for parent in waits]}


@mutant("operator", "names the parents in reverse order", "START-007")
def _arguments_backwards() -> None:
    original = startup.container
    replace(startup, "container", lambda waits, image: original(dict(reversed(waits.items())), image))


@mutant("operator", "waits for all pods of a parent", "START-007", "START-016", name="all-pods-awaited")
@around(startup, "awaited_cliques")
def await_all_pods(original: Original, pcs: Any, *rest: Any) -> dict[str, int]:
    """Make pods wait for all pods of their parents."""
    counts = {t.name: t.spec.replicas for t in pcs.spec.template.cliques}
    return {
        parent: max((n for name, n in counts.items() if parent.endswith(f"-{name}")), default=minimum)
        for parent, minimum in original(pcs, *rest).items()
    }


@mutant("operator", "waits for one pod of each parent", "START-017", "INV-026", name="first-pods-awaited")
def await_first_pods() -> None:
    """Make pods wait for one pod of each parent."""
    original = startup.awaited_cliques
    replace(startup, "awaited_cliques", lambda *arguments: dict.fromkeys(original(*arguments), 1))


@mutant("operator", "finds the count of a parent by a suffix of its name", "START-009")
@around(startup, "awaited_cliques")
def _count_by_suffix(original: Original, pcs: Any, *rest: Any) -> dict[str, int]:
    return {
        parent: next(t.spec.minimum for t in pcs.spec.template.cliques if parent.endswith(t.name))
        for parent in original(pcs, *rest)
    }


def _parents_in(replicas: Any) -> None:
    """Make the cliques of a base gang wait for the parents in the group replicas that `replicas` returns."""
    original = startup._cliques_in_gang

    def in_gang(pcs: Any, name: str, index: int, gang: EntryGang) -> dict[str, int]:
        group = startup._group_of(pcs, name)
        if not gang.entry.anchor or group is None:
            return original(pcs, name, index, gang)
        least = next(t.spec.minimum for t in pcs.spec.template.cliques if t.name == name)
        return {startup._full_name(pcs, index, name, group, j): least for j in replicas(group)}

    replace(startup, "_cliques_in_gang", in_gang)


@mutant("operator", "waits for one replica of a group in the base gang", "START-002", "START-004")
def _own_replica_only() -> None:
    _parents_in(lambda group: [0])


@mutant("operator", "waits for scaled replicas in the base gang, too", "START-004", "START-011")
def _scaled_awaited() -> None:
    _parents_in(lambda group: range(group.replicas))


@mutant("operator", "makes scaled gangs wait for the cliques of their base gang", "START-003", "START-005", "START-012")
@around(startup, "awaited_cliques")
def _gangs_wait_for_gangs(original: Original, pcs: Any, template: Any, index: int, gang: EntryGang) -> dict[str, int]:
    return original(pcs, template, index, gang if gang.entry.anchor else startup.base_gang(pcs))


@mutant("operator", "makes all replicas of a set wait for the first one", "START-012")
def _first_replica_awaited() -> None:
    original = startup.awaited_cliques
    replace(startup, "awaited_cliques", lambda pcs, template, index, gang: original(pcs, template, 0, gang))


@mutant("operator", "gives pods no init container", "START-006", "START-011", "INV-006")
def _nobody_waits() -> None:
    replace(startup, "with_init_container", lambda pod_spec, *_: pod_spec)


@mutant("operator", "mounts no token into the init container", "START-008")
def _token_volume_missing() -> None:
    original, wait = startup.volumes, startup.container

    def container(waits: Any, image: str) -> dict[str, Any]:
        manifest = wait(waits, image)
        return {**manifest, "volumeMounts": [m for m in manifest["volumeMounts"] if m["name"] != startup.TOKEN_VOLUME]}

    replace(startup, "volumes", lambda pcs: [v for v in original(pcs) if v["name"] != startup.TOKEN_VOLUME])
    replace(startup, "container", container)


@mutant("operator", "passes the clique instead of the gang to the init container", "START-008")
@around(startup, "volumes")
def _gang_file_wrong(original: Original, pcs: str) -> list[dict[str, Any]]:
    result = original(pcs)
    for item in result[1]["downwardAPI"]["items"]:
        item["fieldRef"] = {"fieldPath": item["fieldRef"]["fieldPath"].replace("podgang", "podclique")}
    return result


@mutant("operator", "creates pods only once one pod of each parent is ready", "START-010")
@around(CliqueReconciler, "_sync_pods")
async def _created_in_order(original: Original, self: CliqueReconciler, place: CliqueContext) -> None:
    clique = place.clique
    parents = [self._cache.cliques.get(clique.metadata.namespace, name) for name in clique.spec.starts_after or ()]
    if all(p is not None and any(pod.ready for pod in self._cache.pods_of(p)) for p in parents):
        await original(self, place)


@mutant("operator", "deletes the pods of a clique whose parent is lost", "START-013")
@around(CliqueReconciler, "reconcile", memory=set)
async def _children_restarted(
    original: Original, served_keys: set[Key], self: CliqueReconciler, key: Key
) -> float | None:
    result = await original(self, key)
    clique = self._cache.cliques.get(*key)
    if clique is None:
        return result
    if any(pod.ready for pod in self._cache.pods_of(clique)):
        served_keys.add(key)
    elif key in served_keys:
        served_keys.discard(key)
        for child in self._cache.cliques:
            if child.metadata.namespace == key[0] and key[1] in (child.spec.starts_after or ()):
                for pod in self._cache.pods_of(child):
                    await self._writer.delete(self._cache.pods, pod)
    return result


@mutant("operator", "lets replacement pods start without waiting", "START-014")
@around(CliqueContext, "awaited_cliques", memory=set)
def _waits_once(original: Original, seen_uids: set[str], self: CliqueContext, gang: str) -> dict[str, int]:
    if self.clique.metadata.uid in seen_uids:
        return {}
    seen_uids.add(self.clique.metadata.uid)
    return original(self, gang)
