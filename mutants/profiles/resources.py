"""Mutants of secondary resources: accounts and roles, autoscalers, claims, and the fields that gangs copy from sets."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import msgspec

from kube.objects import Key, Object
from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, on_result_of, replace, replace_data
from reference_impl.api.models import PodCliqueSet, PodGang
from reference_impl.control.last_errors import LastErrors
from reference_impl.control.operator import Operator
from reference_impl.control.podcliqueset import SetReconciler
from reference_impl.control.secondary_resources import SecondaryResources
from reference_impl.control.writer import Writer
from reference_impl.plan import (
    autoscalers,
    children,
    claims,
    desired,
    drift,
    gangs,
    labels,
    names,
    ownership,
    pods,
    secondary_resources,
    topology,
)
from reference_impl.plan.reconcile_error import ReconcileError

Manifest = children.Manifest


def changed(module: Any, name: str, change: Any) -> None:
    """Apply `change` to each manifest that the function returns."""
    original = getattr(module, name)

    def spoilt(*arguments: Any, **named: Any) -> Any:
        manifest = original(*arguments, **named)
        change(manifest)
        return manifest

    replace(module, name, spoilt)


@mutant("operator", "creates no RoleBinding", "RES-001")
@around(Writer, "ensure")
async def _no_role_binding(original: Original, self: Writer, informer: Any, manifest: Manifest) -> None:
    if manifest["kind"] != "RoleBinding":
        await original(self, informer, manifest)


@mutant("operator", "creates a service for a set without replicas", "RES-012")
@around(SetReconciler, "reconcile")
async def _service_without_replicas(original: Original, self: SetReconciler, key: Key) -> float | None:
    pcs = self._cache.sets.get(*key)
    if pcs is not None and not pcs.spec.replicas and pcs.metadata.deletion_timestamp is None:
        await self._writer.create(self._cache.services, children.service(pcs, 0))
    return await original(self, key)


@mutant("operator", "names the token Secret as before alpha.12", "RES-094")
def _secret_misnamed() -> None:
    replace(names, "token_secret", lambda pcs: f"{pcs}-initc-sa-token-secret")


@mutant("operator", "labels the Role with the component of the RoleBinding", "RES-002")
def _role_unlabelled() -> None:
    changed(
        secondary_resources, "role", lambda m: m["metadata"]["labels"].update({labels.COMPONENT: "pod-role-binding"})
    )


@mutant("operator", "creates a ServiceAccount without an owner", "RES-003")
def _account_orphaned() -> None:
    changed(secondary_resources, "service_account", lambda m: m["metadata"].pop("ownerReferences"))


@mutant("operator", "allows the init containers to change pods", "RES-004")
def _role_too_wide() -> None:
    rule = {"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "list", "patch", "watch"]}
    replace_data(secondary_resources, "RULES", [rule], read_by=(secondary_resources, "role"))


@mutant("operator", "creates account and role after everything else", "RES-005")
def _secondary_resources_late() -> None:
    original, children_of = SecondaryResources.ensure, SetReconciler._sync_children

    async def nothing(self: SecondaryResources, *_: Any, **__: Any) -> None:
        return None

    async def children_first(self: SetReconciler, pcs: Any) -> None:
        await children_of(self, pcs)
        await original(self._secondary, desired.DesiredSet(pcs, (), (), ()))

    replace(SecondaryResources, "ensure", nothing)
    replace(SetReconciler, "_sync_children", children_first)


@mutant("operator", "omits the account from the token Secret", "RES-006")
def _secret_without_account() -> None:
    changed(secondary_resources, "token_secret", lambda m: m.update(type="Opaque"))


@mutant("operator", "creates roles and services only once", "RES-007", "RES-008")
@around(Writer, "ensure", memory=set)
async def _secondary_resources_once(
    original: Original, created: set[str], self: Writer, informer: Any, manifest: Manifest
) -> None:
    identity = f"{manifest['kind']} {manifest['metadata']['namespace']}/{manifest['metadata']['name']}"
    if manifest["kind"] == "Service" or (manifest["kind"] == "Role" and identity in created):
        return
    created.add(identity)
    await original(self, informer, manifest)


@mutant("operator", "never corrects existing objects", "RES-008", "RES-009")
def _drift_kept() -> None:
    replace(drift, "correction", lambda manifest, current: {})


@mutant("operator", "adopts any Secret that has the right name", "RES-010")
@instead_of(Writer, "_check_existing")
async def _secret_taken_over(self: Writer, informer: Any, manifest: Manifest) -> None:
    return None


@mutant("operator", "never reconciles a set again after an error", "RES-011")
@around(SetReconciler, "reconcile")
async def _gives_up_after_errors(original: Original, self: SetReconciler, key: Key) -> float | None:
    return None if key in self.last_errors.failed_keys else await original(self, key)


@mutant("operator", "never clears lastErrors", "CORE-040")
@around(LastErrors, "report")
async def _errors_stay(original: Original, self: LastErrors, key: Key, problem: Any) -> float | None:
    return await original(self, key, problem) if problem is not None else None


@mutant("operator", "copies labels with Grove's prefix from the set to gangs", "RES-020")
def _mirror_takes_all() -> None:
    replace(
        labels,
        "mirrored_metadata",
        lambda grove_entries, existing, of_set: {**(existing or {}), **grove_entries, **(of_set or {})},
    )


@mutant("operator", "removes annotations of others from gangs", "RES-095")
@on_result_of(gangs, "gang_annotations")
def _foreign_annotations_removed(
    notes: dict[str, str], pcs: PodCliqueSet, gang: gangs.PlannedGang, binding: str, existing: dict[str, str] | None
) -> dict[str, str]:
    set_keys = (pcs.metadata.annotations or {}).keys()
    return {key: value for key, value in notes.items() if key.startswith(labels.OWNED_PREFIX) or key in set_keys}


@mutant("operator", "keeps labels on gangs that their set has lost", "RES-021")
def _mirror_only_adds() -> None:
    original = labels.mirrored_metadata
    replace(
        labels,
        "mirrored_metadata",
        lambda grove_entries, existing, of_set: {**(existing or {}), **original(grove_entries, existing, of_set)},
    )


@mutant("operator", "reconciles a set only when its spec changes", "RES-021", "RES-022")
@around(Operator, "_on_set")
def _trigger_ignored(original: Original, self: Operator, kind: str, old: Any, item: Any) -> None:
    if kind != "MODIFIED" or old.metadata.generation != item.metadata.generation:
        original(self, kind, old, item)


@mutant("operator", "omits the labels of templates", "RES-023", "RES-119")
def _labels_dropped() -> None:
    changed(children, "_clique_manifest", _without_labels)


@mutant("operator", "omits the labels of templates on pods", "RES-119", name="pod-labels-dropped")
@on_result_of(pods.PodBuilder, "pod")
def pods_without_labels(manifest: Manifest, *_: Any) -> Manifest:
    """Create pods without the labels of their template."""
    copy = {**manifest, "metadata": {**manifest["metadata"], "labels": dict(manifest["metadata"]["labels"])}}
    _without_labels(copy)
    return copy


def _without_labels(manifest: Manifest) -> None:
    pod_labels = manifest["metadata"]["labels"]
    for key in [key for key in pod_labels if "grove.io/" not in key and "kubernetes.io/" not in key]:
        del pod_labels[key]


@mutant("operator", "omits the annotations of templates", "RES-115")
def _annotations_dropped() -> None:
    changed(children, "_clique_manifest", lambda m: m["metadata"].pop("annotations", None))


@mutant("operator", "gives gangs no priority class", "RES-024")
def _gang_without_priority() -> None:
    changed(gangs, "manifest", lambda m: m["spec"].pop("priorityClassName", None))
    replace(gangs, "drift", lambda *_: {})


@mutant("operator", "sets the priority class only on gangs", "RES-025")
def _pods_without_priority() -> None:
    changed(children, "_clique_manifest", lambda m: m["spec"]["podSpec"].pop("priorityClassName", None))


@mutant("operator", "sets a minimum of two on autoscalers", "RES-030")
def _autoscaler_unbounded() -> None:
    changed(autoscalers, "_manifest", lambda m: m["spec"].update(minReplicas=2))


@mutant("operator", "creates autoscalers without an owner", "RES-116")
def _autoscaler_orphaned() -> None:
    changed(autoscalers, "_manifest", lambda m: m["metadata"].pop("ownerReferences"))


@mutant("operator", "creates autoscalers without labels", "RES-031")
def _autoscaler_unlabelled() -> None:
    changed(autoscalers, "_manifest", lambda m: m["metadata"].pop("labels"))


@mutant("operator", "names autoscalers after what they are", "RES-096")
@on_result_of(autoscalers, "_manifest")
def autoscaler_misnamed(original: Manifest, *_: Any) -> Manifest:
    """Append a suffix to the names of autoscalers."""
    metadata = original["metadata"]
    return {**original, "metadata": {**metadata, "name": f"{metadata['name']}-scaler"}}


@mutant("operator", "writes a group's replicas in each reconcile of the set", "RES-032")
@around(SetReconciler, "_sync_children")
async def _group_replicas_overwritten(original: Original, self: SetReconciler, pcs: Any) -> None:
    await original(self, pcs)
    for config in children.group_configs(pcs):
        name = names.scaling_group(pcs.metadata.name, 0, config.name)
        group = self._cache.groups.get(pcs.metadata.namespace, name)
        if group is not None and group.spec.replicas != config.replicas:
            await self._writer.patch(self._cache.groups, group, {"spec": {"replicas": config.replicas}})


@mutant("operator", "writes a clique's replicas in each reconcile of the set", "RES-097")
@around(SetReconciler, "_sync_children")
async def _replicas_overwritten(original: Original, self: SetReconciler, pcs: Any) -> None:
    await original(self, pcs)
    for template in children.standalone_templates(pcs):
        clique = self._cache.cliques.get(pcs.metadata.namespace, names.clique(pcs.metadata.name, 0, template.name))
        if clique is not None and clique.spec.replicas != template.spec.replicas:
            await self._writer.patch(self._cache.cliques, clique, {"spec": {"replicas": template.spec.replicas}})


@mutant(
    "operator", "never deletes autoscalers and claims that are not desired any more", "RES-033", "RES-047", "DEV-029"
)
@around(Writer, "delete")
async def _surplus_kept(original: Original, self: Writer, informer: Any, item: Any) -> None:
    if informer.resource.kind not in ("HorizontalPodAutoscaler", "ResourceClaim"):
        await original(self, informer, item)


@mutant("operator", "creates one claim for all pods where each has its own", "RES-040")
def _claim_per_wrong_level() -> None:
    replace(names, "replica_claim", lambda owner, index, template: f"{owner}-all-{template}")


@mutant("operator", "omits the index label of claims", "RES-098")
def _claim_without_place() -> None:
    def forget(manifest: Manifest) -> None:
        for key in (labels.REPLICA_INDEX, labels.SCALING_GROUP_REPLICA_INDEX, labels.POD_INDEX):
            manifest["metadata"]["labels"].pop(key, None)

    changed(claims, "manifest", forget)


@mutant("operator", "prefers a template of the cluster to one of the set", "RES-042")
@around(claims, "claim_spec")
def _outside_template_first(original: Original, pcs: Any, sharing: Any, external: Any) -> Manifest:
    spec = external(pcs.metadata.namespace, sharing.name)
    return dict(spec) if spec is not None else original(pcs, sharing, external)


@mutant("operator", "passes claims to main containers only", "RES-098")
@around(claims, "with_claims")
def init_containers_without_claims(original: Original, spec: Manifest, given: Any) -> Manifest:
    """Pass claims to main containers only, not to init containers."""
    result = original(spec, given)
    return {**result, "initContainers": spec["initContainers"]} if "initContainers" in spec else result


@mutant("operator", "shares every claim of the set with every clique", "RES-044")
def _filter_ignored() -> None:
    replace(claims, "_is_shared_by_set", lambda *_: True)


@mutant("operator", "continues without a claim whose template is missing", "RES-045")
def _missing_template_ignored() -> None:
    original = claims.claim_spec
    replace(
        claims, "claim_spec", lambda pcs, sharing, external: original(pcs, sharing, lambda *at: external(*at) or {})
    )


@mutant("operator", "deletes the claims of pods whose index is beyond the replicas", "RES-046")
def _claim_of_pod_deleted() -> None:
    original = claims.clique_claims
    replace(claims, "clique_claims", lambda clique, template, in_use: original(clique, template, ()))


@mutant("operator", "finds a clique's template by a suffix of its name", "RES-050")
def _template_by_ending() -> None:
    original = children.find_template

    def template(pcs: Any, name: str) -> Any:
        return next((t for t in pcs.spec.template.cliques if name.endswith(t.name)), original(pcs, name))

    def standalone(pcs: Any) -> Any:
        grouped = {name for config in children.group_configs(pcs) for name in config.clique_names}
        return [
            msgspec.structs.replace(template(pcs, t.name), name=t.name)
            for t in pcs.spec.template.cliques
            if t.name not in grouped
        ]

    replace(children, "standalone_templates", standalone)


@mutant("operator", "adopts the gang of another set", "RES-051")
@around(ownership, "owns")
def _foreign_gang_changed(original: Original, owner: Object, item: Object) -> bool:
    return original(owner, item) or (isinstance(owner, PodCliqueSet) and isinstance(item, PodGang))


@mutant("operator", "writes domain names instead of node label keys", "RES-060", "RES-062")
def _domains_untranslated() -> None:
    replace(topology.SetTopology, "_key", lambda self, domain: domain if domain in (self.levels or {}) else None)


@mutant("operator", "names the binding even on gangs without constraints", "RES-100")
def _topology_name_kept() -> None:
    replace(gangs.PlannedGang, "constrained", property(lambda self: True))


@mutant("operator", "never names the binding on gangs", "RES-061")
def _topology_unnamed() -> None:
    replace(gangs.PlannedGang, "constrained", property(lambda self: False))


@mutant("operator", "does not reconcile sets when their binding changes", "RES-063", "RES-064")
def _binding_unwatched() -> None:
    replace(Operator, "_on_topology", lambda *_: None)


@mutant("operator", "reports no condition about topology constraints", "RES-065")
def _topology_unreported() -> None:
    replace(topology, "condition", lambda *_: None)


@mutant("operator", "creates claims that outlive their set", "RES-041", "RES-090", "DEV-029")
def _claims_orphaned() -> None:
    def lose(manifest: Manifest) -> None:
        manifest["metadata"]["ownerReferences"] = []

    changed(claims, "manifest", lose)
    replace(drift, "correction", lambda manifest, current: {})
    replace(ownership, "has_expected_controller", lambda manifest, current: True)


@mutant("operator", "does not pass claims of their own level to pods", "RES-043")
@around(pods.PodBuilder, "__init__")
def _hidden_claims(
    original: Original,
    self: pods.PodBuilder,
    clique: Any,
    scheduler_name: str,
    waits: Any,
    image: str,
    claims_of: Any = None,
) -> None:
    prefix = f"{clique.metadata.name}-"
    visible_claims = claims_of and (lambda index: [c for c in claims_of(index) if not c.startswith(prefix)])
    original(self, clique, scheduler_name, waits, image, visible_claims)


@mutant("operator", "never deletes the token Secret of an earlier version", "RES-013")
@instead_of(SecondaryResources, "_retire_legacy_secret")
async def _earlier_secret_kept(self: SecondaryResources, pcs: Any) -> None:
    return None


@mutant("operator", "deletes a Secret that a pod still mounts", "RES-013")
def _earlier_secret_deleted_early() -> None:
    replace(secondary_resources, "mounts_secret", lambda pod, secret: False)


@mutant("operator", "does not report a scaling group of another owner", "RES-091")
@around(LastErrors, "report")
async def _group_conflict_hidden(
    original: Original, self: LastErrors, key: Key, problem: ReconcileError | None
) -> float | None:
    hidden = problem is not None and "PodCliqueScalingGroup" in problem.description
    return await original(self, key, None if hidden else problem)


@mutant("operator", "does not report a Service of another owner", "RES-093")
@around(LastErrors, "report")
async def _service_conflict_hidden(
    original: Original, self: LastErrors, key: Key, problem: ReconcileError | None
) -> float | None:
    hidden = problem is not None and problem.description.startswith("Service ")
    return await original(self, key, None if hidden else problem)


def _levels_turned(turned: Callable[[str], bool]) -> None:
    """Reverse the missing levels in the condition's message if there are several levels and `turned` returns True for
    the UID of the set."""
    original = topology.condition

    def condition(pcs: Any, *rest: Any) -> Any:
        result = original(pcs, *rest)
        if result is None:
            return None
        head, bracket, listed = result.message.partition("[")
        domains = listed.rstrip("]").split()
        if bracket and len(domains) > 1 and turned(pcs.metadata.uid):
            return msgspec.structs.replace(result, message=f"{head}[{' '.join(reversed(domains))}]")
        return result

    replace(topology, "condition", condition)


@mutant("operator", "lists missing topology levels in random order", "RES-092")
def _levels_in_any_order() -> None:
    number = itertools.count()
    _levels_turned(lambda uid: next(number) % 2 == 1)


@mutant("operator", "first lists missing topology levels in another order", "RES-092")
def _levels_turned_at_first() -> None:
    seen_uids: set[str] = set()
    _levels_turned(lambda uid: uid not in seen_uids and not seen_uids.add(uid))  # type: ignore[func-returns-value]
