"""Variants of the Workload API back-end with other names, another order, other minimums after placement, or other
modes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from mutants.registry import variant
from mutants.replacement import Original, around, instead_of, on_result_of, replace
from mutants.workload_api import PERMITTED, change_objects, extras_at_once, lost_pods_together
from reference_impl.admission import podcliqueset
from reference_impl.admission.errors import ErrorType, FieldError
from reference_impl.admission.result import AdmissionResult
from reference_impl.api import models
from reference_impl.api.models import PodGang
from reference_impl.control.workload_api import WorkloadBackend
from reference_impl.plan import labels
from reference_impl.plan.children import Manifest
from reference_impl.plan.workload_api import difference, manifests, names, standing
from reference_impl.plan.workload_api.difference import Change, GangDifference
from reference_impl.plan.workload_api.planned import Planned
from reference_impl.plan.workload_api.tree import MAX_ENTRIES, Leaf, Tree, TreeNode, has_preferred_topology

permitted = PERMITTED.add
WAITS = "test_operator:test_the_minimum_is_created_first_and_the_other_pods_follow"
TREE = "test_tree:test_a_gang_becomes_a_root_with_a_node_for_each_replica_and_a_leaf_for_each_clique"


@permitted("wl-other-names", "names groups after nothing that people know", WAITS)
def _other_names() -> None:
    def leaf(gang: PodGang, of: Tree, one: Leaf, parent: TreeNode | None) -> str:
        above = None if parent is None else names.composite(gang, parent)
        return f"g-{names.digest(gang.metadata.uid, one.clique, above, one.key, of.priority_class, length=20)}"

    replace(names, "composite", lambda gang, node: f"c-{names.digest(gang.metadata.uid, node.name, length=20)}")
    replace(names, "leaf", leaf)


@permitted("wl-other-template-names", "numbers templates by a digest of their names", WAITS)
def _other_template_names() -> None:
    replace(names, "template", lambda kind, name: f"t{names.digest(kind, name, length=30)}")


@permitted("wl-leaves-first", "creates groups before their parents, and the Workload last", WAITS)
@around(difference, "difference")
def _leaves_first(original: Original, gang: PodGang, objects: Iterable[Manifest], observed: Any) -> GangDifference:
    result = original(gang, objects, observed)
    return GangDifference(tuple(reversed(result.changes)), result.waits_for)


@permitted("wl-workload-named-apart", "gives the Workload another name than its PodGang", WAITS)
def _workload_named_apart() -> None:
    def renamed(gang: PodGang, objects: list[Manifest]) -> list[Manifest]:
        for manifest in objects:
            if manifest["kind"] == "Workload":
                manifest["metadata"]["name"] += "-workload"
            elif "workloadRef" in manifest["spec"]:
                manifest["spec"]["workloadRef"]["workloadName"] += "-workload"
            else:
                manifest["spec"]["podGroupTemplateRef"]["workload"]["workloadName"] += "-workload"
        return objects

    change_objects(renamed)


permitted(
    "wl-extras-at-once",
    "creates pods above the minimum at once, as the text has it",
    "test_standing:test_pods_above_the_minimum_are_created_when_the_gang_is_placed#0",
)(extras_at_once)
permitted(
    "wl-lost-pods-together",
    "requires all children again before it replaces a lost pod, as the text has it",
    "test_standing:test_all_children_are_required_until_a_placed_gang_loses_pods",
)(lost_pods_together)


@permitted(
    "wl-one-child-once-placed",
    "requires only one child from the first placement on",
    "test_standing:test_all_children_are_required_until_a_placed_gang_loses_pods",
)
def _one_child_once_placed() -> None:
    replace(standing, "required_groups", lambda now, mode: 1 if now.has_started else None)


@permitted(
    "wl-members-evicted-singly",
    "leaves the disruption mode at its default",
    "test_tree:test_only_the_root_is_evicted_as_a_whole",
)
def _members_evicted_singly() -> None:
    original = manifests._node

    def node(of: Tree, node: TreeNode, least: int, *, whole: bool) -> Manifest:
        return original(of, node, least, whole=False)

    replace(manifests, "_node", node)


@permitted(
    "wl-own-labels-only",
    "gives objects the label of their gang, and none of the gang's own",
    "test_tree:test_objects_are_owned_by_the_gang_and_have_its_labels",
)
def _own_labels_only() -> None:
    own_keys = (labels.PODGANG, labels.PODCLIQUE, labels.MANAGED_BY)

    def own_labels(gang: PodGang, objects: list[Manifest]) -> list[Manifest]:
        for manifest in objects:
            tags = manifest["metadata"]["labels"]
            manifest["metadata"]["labels"] = {key: tags[key] for key in own_keys if key in tags}
        return objects

    change_objects(own_labels)


@permitted("wl-objects-late", "waits a while before each object that it writes", WAITS)
@around(WorkloadBackend, "_apply")
async def _objects_late(original: Original, self: WorkloadBackend, change: Change, gang: PodGang) -> None:
    await asyncio.sleep(0.3)
    await original(self, change, gang)


@variant("operator", "posts warnings about the set of a gang", "WAPI-076", "WAPI-079")
@instead_of(WorkloadBackend, "_warn")
async def _wl_warned_at_the_set(self: WorkloadBackend, gang: PodGang, plan: Planned) -> None:
    warned, now = self._warned.get(gang.metadata.key, ("", False)), (plan.refusal, has_preferred_topology(gang))
    self._warned[gang.metadata.key] = now
    pcs = self._cache.set_of(gang)
    if now != warned and any(now) and pcs is not None:
        note = plan.refusal or "a preference is ignored"
        await self._writer.warn(models.PODCLIQUESETS, pcs, "NotAsAsked", note)


@variant("operator", "leaves the controllerRef of Workloads out", "WAPI-073", "WAPI-083", exempt=("WAPI-093",))
def _wl_workloads_without_controller() -> None:
    def uncontrolled(gang: PodGang, objects: list[Manifest]) -> list[Manifest]:
        for manifest in objects:
            if manifest["kind"] == "Workload":
                manifest["spec"].pop("controllerRef", None)
        return objects

    change_objects(uncontrolled)


@variant(
    "operator",
    "rejects sets with more standalone cliques than a list of templates can have",
    "WAPI-078",
    "WAPI-079",
    "WAPI-095",
    conflict="other profiles have such sets",
)
@on_result_of(podcliqueset, "judge")
def _wl_long_lists_rejected(verdict: AdmissionResult, new: Any, *arguments: Any) -> AdmissionResult:
    count = len(new["spec"]["template"]["cliques"])
    if count <= MAX_ENTRIES:
        return verdict
    error = FieldError("spec.template.cliques", ErrorType.INVALID, count, f"must have at most {MAX_ENTRIES} items")
    return AdmissionResult([*verdict.errors, error], verdict.warnings)
