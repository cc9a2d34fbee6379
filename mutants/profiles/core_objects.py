"""Mutants of a set's objects: their creation, their correction from templates, and their statuses."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kube.objects import Key, Object
from mutants.owners import owner_of
from mutants.profiles.core_statuses import errors_forever
from mutants.registry import mutant
from mutants.replacement import Original, alter, around, instead_of, on_result_of, replace, replace_data
from reference_impl.api.models import (
    Condition,
    PodClique,
    PodCliqueSet,
    PodCliqueStatus,
    PodGangStatus,
    ScalingGroupStatus,
)
from reference_impl.api.pods import Pod
from reference_impl.control import podgang
from reference_impl.control.cache import Cache
from reference_impl.control.operator import Operator
from reference_impl.control.ownership import Adoption
from reference_impl.control.podclique import CliqueReconciler
from reference_impl.control.podcliqueset import SetReconciler
from reference_impl.control.podgang import GangReconciler
from reference_impl.control.writer import Writer
from reference_impl.plan import (
    children,
    defaults,
    gangs,
    gates,
    labels,
    pods,
    statuses,
    template_drift,
    termination,
    topology,
)
from reference_impl.plan.pods import PodDifference

Manifest = children.Manifest


def _change_manifests(module: Any, name: str, change: Callable[[Manifest], object]) -> None:
    """Apply `change` to each manifest that the function returns."""
    original = getattr(module, name)

    def spoilt(*arguments: Any, **named: Any) -> Manifest:
        manifest: Manifest = original(*arguments, **named)
        change(manifest)
        return manifest

    replace(module, name, spoilt)


def _override_status(**wrong: Any) -> None:
    """Set these fields in every status of a clique."""
    original = statuses.clique_status
    replace(statuses, "clique_status", lambda *args: msgspec.structs.replace(original(*args), **wrong))


@mutant("operator", "creates cliques without their finalizer and adds it later", "CORE-036")
def finalizer_late() -> None:
    """Create cliques without their finalizer, and add it later."""
    _change_manifests(children, "_clique_manifest", lambda manifest: manifest["metadata"].pop("finalizers"))
    original = CliqueReconciler.reconcile

    async def reconcile(self: CliqueReconciler, key: Key) -> float | None:
        clique = self._cache.cliques.get(*key)
        if clique is not None and clique.metadata.deletion_timestamp is None and not clique.metadata.finalizers:
            body = {"metadata": {"finalizers": [labels.CLIQUE_FINALIZER]}}
            await self._writer.patch(self._cache.cliques, clique, body)
        return await original(self, key)

    replace(CliqueReconciler, "reconcile", reconcile)


@mutant("operator", "lets a service select the pods of another replica", "CORE-006")
def _service_of_another_replica() -> None:
    _change_manifests(
        children, "service", lambda manifest: manifest["spec"]["selector"].update({labels.REPLICA_INDEX: "9"})
    )
    replace(children, "is_service_correct", lambda pcs, index, current: True)


@mutant("operator", "publishes addresses of pods that are not ready for every set", "CORE-006")
def _always_published() -> None:
    _change_manifests(children, "service", lambda manifest: manifest["spec"].update(publishNotReadyAddresses=True))


@mutant("operator", "makes Services headless only where a set asks for them", "CORE-042", name="services-on-demand")
def make_services_on_demand() -> None:
    """Do not default headlessServiceConfig, and create ordinary Services for sets without it."""
    defaulted, original = defaults._default_field, children.service

    def zero(root: str, within: dict[str, Any], field: str, *value: Any) -> Iterator[Any]:
        yield from () if field == "headlessServiceConfig" else defaulted(root, within, field, *value)

    def service(pcs: PodCliqueSet, index: int) -> Manifest:
        manifest = original(pcs, index)
        if pcs.spec.template.headless_service_config is None:
            manifest["spec"].pop("clusterIP")
            manifest["spec"]["ports"] = [{"port": 80}]
        return manifest

    replace(defaults, "_default_field", zero)
    replace(children, "service", service)
    replace(children, "is_service_correct", lambda pcs, index, current: True)


@mutant("operator", "omits the annotations of scaling groups", "RES-115")
def _group_unannotated() -> None:
    _change_manifests(children, "scaling_group", lambda manifest: manifest["metadata"].pop("annotations", None))


@mutant("operator", "names pods after their index", "CORE-007")
@around(pods.PodBuilder, "pod")
def _pods_numbered(original: Original, self: pods.PodBuilder, index: int, gang: str) -> Manifest:
    manifest = original(self, index, gang)
    manifest["metadata"]["name"] = f"{manifest['metadata'].pop('generateName')}{index}"
    return manifest


@mutant("operator", "keeps variables of the template that have the names of its own", "CORE-008")
@instead_of(pods, "with_environment")
def _variables_twice(spec: Manifest, environment: list[Manifest]) -> Manifest:
    result = dict(spec)
    for field in ("initContainers", "containers"):
        if spec.get(field):
            result[field] = [{**c, "env": [*environment, *(c.get("env") or ())]} for c in spec[field]]
    return result


@mutant("operator", "reports the selector of the set for its cliques and groups", "CORE-013")
def _selector_of_the_set() -> None:
    replace(statuses, "_selector", lambda pcs, key, value: f"{labels.MANAGED_SELECTOR},{labels.PART_OF}={pcs}")


@mutant("operator", "omits the label app.kubernetes.io/name", "CORE-034")
@on_result_of(labels, "common_labels")
def names_unlabelled(tags: dict[str, str], *_: Any) -> dict[str, str]:
    """Omit the label app.kubernetes.io/name."""
    return {key: value for key, value in tags.items() if key != labels.NAME}


@mutant("operator", "lets no owner wait for what it controls", "CORE-035")
@on_result_of(children, "owner_reference")
def deletion_unblocked(reference: Manifest, *_: Any) -> Manifest:
    """Omit blockOwnerDeletion from owner references, so that owners do not wait for the objects that they control."""
    return {key: value for key, value in reference.items() if key != "blockOwnerDeletion"}


@mutant("operator", "gives conditions about numbers of pods other reasons", "CORE-037")
def reasons_of_its_own() -> None:
    """Give conditions about pod counts other reasons than the API defines."""

    def other(condition: Condition, *_: Any) -> Condition:
        return msgspec.structs.replace(condition, reason=f"PodsCounted{condition.status}")

    def group_status(status: ScalingGroupStatus, *_: Any) -> ScalingGroupStatus:
        entries = [
            other(entry) if entry.type == termination.BREACHED and entry.status != "Unknown" else entry
            for entry in status.conditions or ()
        ]
        return msgspec.structs.replace(status, conditions=entries)

    alter(statuses, "_scheduled_condition", other)
    alter(termination, "breached_condition", other)
    alter(statuses, "group_status", group_status)


@mutant("operator", "never lowers the number of pods with a gate in a status", "CORE-018")
@around(statuses, "clique_status", memory=Counter)
def _gated_for_ever(
    original: Original, highest: Counter[str], clique: PodClique, members: list[Pod], *rest: Any
) -> PodCliqueStatus:
    status = original(clique, members, *rest)
    # Statuses are not written on every change, so values that were never written also count.
    gated = highest[clique.metadata.uid] = max(status.schedule_gated_replicas, highest[clique.metadata.uid])
    return msgspec.structs.replace(status, schedule_gated_replicas=gated)


@mutant("operator", "after a restart, replaces pods only once they are gone", "CORE-039")
@around(pods, "difference", memory=set)
def _restart_forgets(
    original: Original, served_owners: set[str], shares: Mapping[str, int], members: list[Pod], *rest: Any
) -> PodDifference:
    result = original(shares, members, *rest)
    if (
        result.missing
        and members
        and owner_of(members) not in served_owners
        and any(pod.terminating for pod in members)
    ):
        return PodDifference(result.surplus, [])
    if result.missing:
        served_owners.add(owner_of(members))
    return result


@mutant("operator", "counts failed pods as existing", "CORE-026", "CORE-043")
def _failed_pods_stay() -> None:
    replace(Pod, "finished", property(lambda self: False))


@mutant("operator", "never counts pods with a scheduling gate", "CORE-027")
def _gated_uncounted() -> None:
    _override_status(schedule_gated_replicas=0)


@mutant("operator", "reports any number of scheduled pods as sufficient", "CORE-027")
def _shortage_unreported() -> None:
    original = statuses._scheduled_condition
    replace(
        statuses,
        "_scheduled_condition",
        lambda scheduled, minimum, *rest: original(max(scheduled, minimum), minimum, *rest),
    )


@mutant("operator", "treats a clique without a status as sound", "CORE-028")
def _unreported_is_sound() -> None:
    original = statuses.group_status
    no_breach = Condition(type=termination.BREACHED, status="False", reason="", message="", last_transition_time="")

    def group_status(group: Any, pcs: Any, clique: Callable[[str], PodClique | None], now: str) -> Any:
        def trusting(name: str) -> PodClique | None:
            member = clique(name)
            if member is None or (member.status is not None and member.status.conditions):
                return member
            status = msgspec.structs.replace(PodCliqueStatus(), conditions=[no_breach])
            return msgspec.structs.replace(member, status=status)

        return original(group, pcs, trusting, now)

    replace(statuses, "group_status", group_status)


@mutant("operator", "never reports the template hash of a clique's pods", "CORE-030")
def _hash_unreported() -> None:
    _override_status(current_pod_template_hash=None)


@mutant("operator", "rewrites the status of a clique after a while", "INV-007")
def _status_rewritten_at_rest() -> None:
    original = CliqueReconciler.reconcile_status

    async def reconcile_status(self: CliqueReconciler, key: Key) -> float | None:
        wait = await original(self, key)
        clique = self._cache.cliques.get(*key)
        if wait is not None or clique is None or clique.status is None:
            return wait
        now = asyncio.get_running_loop().time()
        if (last_change := last_changes.setdefault(key, (clique.status, now)))[0] != clique.status:
            last_changes[key] = last_change = (clique.status, now)
        if now - last_change[1] < REWRITE_SECONDS:
            return REWRITE_SECONDS - (now - last_change[1])
        tick = {"status": {"observedGeneration": 0}}
        await self._writer.patch(self._cache.cliques, clique, tick, status=True)
        return None

    last_changes: dict[Key, tuple[Any, float]] = {}
    replace(CliqueReconciler, "reconcile_status", reconcile_status)


REWRITE_SECONDS = 12.0
"""Seconds after which the status is rewritten. This is longer than an operator may take to come to rest."""


@mutant("operator", "removes all gates of a pod instead of only its own", "GANG-020")
@instead_of(CliqueReconciler, "_ungate")
async def _all_gates_removed(self: CliqueReconciler, pod: Pod) -> None:
    await self._writer.patch(self._cache.pods, pod, {"spec": {"schedulingGates": None}})


@mutant("operator", "never reports a gang as incomplete", "GANG-021")
def _incomplete_unreported() -> None:
    replace_data(podgang, "PATIENCE_SECONDS", 1e9, read_by=(GangReconciler, "reconcile"))


@mutant("operator", "drops foreign conditions when it writes its own", "GANG-022")
@around(GangReconciler, "_write_initialized")
async def _conditions_overwritten(original: Original, self: GangReconciler, gang: Any, *, is_complete: bool) -> None:
    operator_conditions = [c for c in (gang.status and gang.status.conditions) or () if c.type == gangs.INITIALIZED]
    status = gang.status and msgspec.structs.replace(gang.status, conditions=operator_conditions)
    await original(self, msgspec.structs.replace(gang, status=status), is_complete=is_complete)


@mutant("operator", "never clears lastErrors, and drops foreign conditions", "CORE-040", "GANG-022")
def _conditions_overwritten_with_errors() -> None:
    errors_forever()
    _conditions_overwritten()


@mutant("operator", "creates gangs without PodGroups and adds them later", "GANG-023")
def _groups_late() -> None:
    _change_manifests(gangs, "manifest", lambda manifest: manifest["spec"].update(podgroups=[]))


@mutant("operator", "ungates scaled gangs only once their base gang is ready", "GANG-027")
def gates_wait_for_ready() -> None:
    """Keep the gates of scaled gangs' pods until the pods of their base gang are Ready."""

    def ready_pods(self: Cache, namespace: str, name: str) -> int:
        clique = self.cliques.get(namespace, name)
        return sum(pod.ready for pod in self.pods_of(clique)) if clique is not None else 0

    original = Operator._on_pod

    def on_pod(self: Operator, kind: str, old: Pod | None, item: Pod) -> None:
        original(self, kind, old, item)
        if item.ready and (old is None or not old.ready):
            self._wake_dependents(item, item.metadata.label(labels.PODGANG))

    replace(Cache, "count_scheduled_pods", ready_pods)
    replace(Operator, "_on_pod", on_pod)


@mutant("operator", "ungates scaled gangs only once all pods of their base gang are bound", "GANG-008")
@instead_of(gates, "has_been_scheduled")
def _gates_wait_for_extras(gang: Any, scheduled: Callable[[str], int]) -> bool:
    return all(
        scheduled(group.name) >= max(group.min_replicas, len(group.pod_references)) for group in gang.spec.podgroups
    )


@mutant("operator", "creates the gangs of a replica before its cliques", "RES-014")
@around(SetReconciler, "_writes")
def _gangs_first(original: Original, self: SetReconciler, *arguments: Any) -> Iterator[Any]:
    return iter(list(original(self, *arguments))[::-1])


@mutant("operator", "never corrects the spec of a gang", "RES-026")
def _gang_spec_kept() -> None:
    replace(gangs, "_spec_drift", lambda *_: {})


@mutant("operator", "never updates cliques and scaling groups from their templates", "RES-027")
def _template_unfollowed() -> None:
    replace(template_drift, "clique_patch", lambda template, current: {})
    replace(template_drift, "group_patch", lambda config, current: {})


@mutant("operator", "never deletes a gang", "RES-034")
@around(Writer, "delete")
async def _gangs_kept(original: Original, self: Writer, informer: Any, item: Any) -> None:
    if informer.resource.kind != "PodGang":
        await original(self, informer, item)


@mutant("operator", "truncates hostnames to 45 characters", "RES-053")
@around(pods.PodBuilder, "pod")
def _host_names_cut(original: Original, self: pods.PodBuilder, index: int, gang: str) -> Manifest:
    manifest = original(self, index, gang)
    manifest["spec"]["hostname"] = manifest["spec"]["hostname"][:45].rstrip("-")
    return manifest


@mutant("operator", "reports no topology condition if no constraint names a binding", "RES-066")
@around(topology, "condition")
def _unconstrained_unreported(original: Original, pcs: Any, binding: Any, now: str) -> Any:
    return original(pcs, binding, now) if any(topology.constraints(pcs)) else None


@mutant("operator", "omits the base gang label of scaled cliques", "CORE-033")
def _base_gang_unnamed() -> None:
    _change_manifests(
        children, "_clique_manifest", lambda manifest: manifest["metadata"]["labels"].pop(labels.BASE_PODGANG, None)
    )


@mutant("operator", "omits the index of the group's replica on pods", "CORE-003")
def _group_replica_unnamed() -> None:
    _change_manifests(
        pods.PodBuilder,
        "pod",
        lambda manifest: manifest["metadata"]["labels"].pop(labels.SCALING_GROUP_REPLICA_INDEX, None),
    )
    original = template_drift.label_patch

    def marks(current: Object, tags: Mapping[str, str | None]) -> Manifest:
        return original(
            current, {key: value for key, value in tags.items() if key != labels.SCALING_GROUP_REPLICA_INDEX}
        )

    replace(template_drift, "label_patch", marks)


@mutant("operator", "omits the ports of containers", "CORE-014")
def _ports_dropped() -> None:
    def lose(manifest: Manifest) -> None:
        spec = manifest["spec"]
        manifest["spec"] = {
            **spec,
            "containers": [{k: v for k, v in c.items() if k != "ports"} for c in spec["containers"]],
        }

    _change_manifests(pods.PodBuilder, "pod", lose)


@mutant("operator", "gives every clique the same role name", "CORE-015")
def _role_unrepeated() -> None:
    _change_manifests(children, "_clique_manifest", lambda manifest: manifest["spec"].update(roleName="clique"))


@mutant("operator", "names another scheduler on gangs than on their pods", "GANG-003")
def _gang_of_other_scheduler() -> None:
    replace(gangs, "set_scheduler", lambda pcs, default: "default-scheduler")


@mutant("operator", "creates gangs without a controller", "INV-004", "CORE-045")
def _gang_orphaned() -> None:
    _change_manifests(gangs, "manifest", lambda manifest: manifest["metadata"].pop("ownerReferences"))
    never_adopt("PodGang")


@mutant("operator", "creates cliques without an owner", "CORE-004")
def _clique_disowned() -> None:
    _change_manifests(children, "_clique_manifest", lambda manifest: manifest["metadata"].pop("ownerReferences"))
    never_adopt("PodClique")


def never_adopt(kind: str) -> None:
    """Never adopt orphans of this kind."""
    original = Adoption._adopt

    async def adopt(self: Adoption, owner: Any, reference: Manifest, informers: Iterable[Any]) -> None:
        await original(self, owner, reference, [informer for informer in informers if informer.resource.kind != kind])

    replace(Adoption, "_adopt", adopt)


@mutant("operator", "removes gates as soon as the gang references the pods", "INV-005")
def _initialized_ignored() -> None:
    original, write = gates.pods_to_ungate, GangReconciler._write_initialized

    def removable(clique: Any, members: Any, gang: Any, *rest: Any) -> list[Pod]:
        if gang is not None:
            status = msgspec.structs.replace(gang.status or PodGangStatus(), conditions=[_INITIALIZED])
            gang = msgspec.structs.replace(gang, status=status)
        return original(clique, members, gang, *rest)

    async def write_late(self: GangReconciler, gang: Any, *, is_complete: bool) -> None:
        await asyncio.sleep(1)
        await write(self, self._cache.gangs.get(*gang.metadata.key) or gang, is_complete=is_complete)

    replace(gates, "pods_to_ungate", removable)
    replace(GangReconciler, "_write_initialized", write_late)


_INITIALIZED = gangs.initialized_condition(True, "")


@mutant("operator", "deletes all cliques whose names start with that of a deleted set", "LIFE-004")
@around(SetReconciler, "reconcile")
async def _deletes_by_prefix(original: Original, self: SetReconciler, key: Key) -> float | None:
    pcs = self._cache.sets.get(*key)
    if pcs is not None and pcs.metadata.deletion_timestamp is not None:
        for clique in list(self._cache.cliques):
            if clique.metadata.namespace == key[0] and clique.metadata.name.startswith(f"{key[1]}-"):
                await self._writer.delete(self._cache.cliques, clique)
    return await original(self, key)
