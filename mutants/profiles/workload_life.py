"""Mutants of the life cycle of gangs on kube-scheduler: order, gates, extra pods, lost pods, reports and repair."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace
from mutants.workload_api import WRONG, extras_at_once, lost_pods_together
from reference_impl.api.models import PodGang, PodGangStatus
from reference_impl.api.pods import Pod
from reference_impl.api.workload_api import WorkloadObject
from reference_impl.control import features, workload_api
from reference_impl.control.cache import BY_GANG, object_key
from reference_impl.control.podgang import GangReconciler
from reference_impl.control.workload_api import GangPlans, WorkloadBackend
from reference_impl.plan import labels
from reference_impl.plan.children import Manifest
from reference_impl.plan.coherent.conditions import SCHEDULED
from reference_impl.plan.workload_api import difference, planned, standing
from reference_impl.plan.workload_api.difference import Change, GangDifference, Verb
from reference_impl.plan.workload_api.standing import Standing

wrong = WRONG.add
OPERATOR = "test_operator"
REFUSED = f"{OPERATOR}:test_a_gang_that_cannot_be_mapped_reports_this_and_its_pods_keep_their_gates"
LOST = "test_standing:test_all_children_are_required_until_a_placed_gang_loses_pods"


@wrong("wl-refused-gang-released", "removes the gates of pods whose gang cannot be mapped", REFUSED)
def _refused_gang_released() -> None:
    replace(planned.Planned, "in_place", property(lambda self: bool(self.refusal) or self.difference.in_place))
    replace(GangPlans, "startable_pods", _startable)


def _startable(self: GangPlans, pods: Iterable[Pod]) -> list[Pod]:
    return list(pods)


def _mark(marked: Callable[[GangPlans, Manifest], Manifest]) -> None:
    """Assign pods to groups by `marked`, and never treat that assignment as stale."""
    replace(GangPlans, "with_pod_group", marked)
    replace(standing, "stale_pods", lambda pods, group: [])
    replace(GangPlans, "startable_pods", _startable)


@wrong("wl-refusal-silent", "says nothing of a gang that cannot be mapped", REFUSED)
def _refusal_silent() -> None:
    replace(planned, "with_refusal", lambda status, refusal: status)


@wrong("wl-refusal-without-event", "posts no event about a gang that cannot be mapped", REFUSED)
@instead_of(WorkloadBackend, "_warn")
async def _refusal_without_event(self: WorkloadBackend, gang: PodGang, plan: planned.Planned) -> None:
    self._warned[gang.metadata.key] = plan.refusal, False


@wrong(
    "wl-preferred-silent",
    "posts no event about preferred topology that it ignores",
    f"{OPERATOR}:test_a_preferred_topology_is_ignored_with_one_event",
)
def _preferred_silent() -> None:
    replace(workload_api, "has_preferred_topology", lambda gang: False)


@wrong(
    "wl-conditions-unwritten",
    "never writes Scheduled and Ready of gangs on kube-scheduler",
    f"{OPERATOR}:test_the_minimum_is_created_first_and_the_other_pods_follow",
)
@instead_of(GangReconciler, "_write_conditions")
async def _conditions_unwritten(self: GangReconciler, gang: PodGang, members: list[Pod]) -> None:
    """Do nothing."""


@wrong(
    "wl-pods-deleted-with-groups",
    "deletes the pods of a gang when one of its objects is deleted",
    f"{OPERATOR}:test_deleted_objects_are_recreated",
)
def _pods_deleted_with_groups() -> None:
    original = WorkloadBackend._on_object

    async def end(self: WorkloadBackend, gang: str) -> None:
        for pod in self._cache.pods.indexed(BY_GANG, gang):
            await self._writer.delete(self._cache.pods, pod)

    def on_object(self: WorkloadBackend, kind: str, old: WorkloadObject | None, item: WorkloadObject) -> None:
        original(self, kind, old, item)
        if kind == "DELETED" and (owner := item.metadata.controller) is not None:
            deletions.append(asyncio.ensure_future(end(self, object_key(item.metadata.namespace, owner.name))))

    deletions: list[asyncio.Future[None]] = []
    replace(WorkloadBackend, "_on_object", on_object)


@wrong(
    "wl-extras-in-no-group",
    "creates pods above the minimum without a PodGroup",
    f"{OPERATOR}:test_the_minimum_is_created_first_and_the_other_pods_follow",
)
def _extras_in_no_group() -> None:
    original = GangPlans.with_pod_group

    def marked(self: GangPlans, pod: Manifest) -> Manifest:
        meta = pod["metadata"]
        gang = self._cache.gangs.get(meta["namespace"], meta["labels"][labels.PODGANG])
        plan, index = self.plan_of(gang), int(meta["labels"][labels.POD_INDEX])
        above = plan is not None and index >= plan.minimums.get(meta["labels"][labels.PODCLIQUE], 1)
        return pod if above else original(self, pod)

    _mark(marked)


@wrong(
    "wl-pods-without-group",
    "creates pods that name no PodGroup",
    f"{OPERATOR}:test_no_pod_loses_its_gate_before_the_objects_exist",
)
def _pods_without_group() -> None:
    _mark(lambda self, pod: pod)


@wrong(
    "wl-all-pods-in-one-group",
    "creates all pods of a gang in the PodGroup of its first clique",
    f"{OPERATOR}:test_the_minimum_is_created_first_and_the_other_pods_follow",
)
def _all_pods_in_one_group() -> None:
    original = GangPlans.with_pod_group

    def marked(self: GangPlans, pod: Manifest) -> Manifest:
        body, meta = original(self, pod), pod["metadata"]
        plan = self.plan_of(self._cache.gangs.get(meta["namespace"], meta["labels"][labels.PODGANG]))
        if plan is None or not plan.groups:
            return body
        return {
            **body,
            "spec": {**body["spec"], "schedulingGroup": {"podGroupName": next(iter(plan.groups.values()))}},
        }

    _mark(marked)


wrong(
    "wl-extras-inside",
    "creates pods above the minimum together with the others",
    "test_standing:test_pods_above_the_minimum_are_created_when_the_gang_is_placed#0",
)(extras_at_once)
wrong("wl-lost-pods-wait", "lets a lost pod wait until all groups of its gang have their minimum", LOST)(
    lost_pods_together
)


@wrong(
    "wl-extras-never",
    "never creates pods above the minimum",
    "test_standing:test_pods_above_the_minimum_are_created_when_the_gang_is_placed#3",
)
def _extras_never() -> None:
    replace(standing, "max_pods", lambda now, least, pods, mode: least)


@wrong("wl-children-optional-from-the-start", "requires one child of a gang that waits", LOST)
def _optional_from_the_start() -> None:
    replace(standing, "required_groups", lambda now, mode: 1)


@wrong(
    "wl-loss-of-all-forgotten",
    "places the pods of a gang that has lost everything one by one",
    "test_standing:test_the_state_of_a_gang_is_derived#9",
)
@around(standing, "standing")
def _loss_of_all_forgotten(original: Original, gang: PodGang, least: Any, pods: Iterable[Pod]) -> Standing:
    result = original(gang, least, pods)
    if gang.status is not None and gang.status.last_scheduled is not None and not result.has_started:
        return Standing(True, True)
    return result


def _never(verb: Verb) -> None:
    original = difference._change

    def change(manifest: Manifest, current: WorkloadObject) -> Change | None:
        result = original(manifest, current)
        return None if result is not None and result.verb is verb else result

    replace(difference, "_change", change)


@wrong(
    "wl-minimum-never-patched",
    "leaves minCount as it was when the minimum of a group changes",
    "test_difference:test_a_changed_minimum_is_patched_in_the_template_and_the_group",
)
def _minimum_never_patched() -> None:
    _never(Verb.PATCH)


@wrong(
    "wl-shape-never-rebuilt",
    "leaves objects that the API cannot change as they are",
    "test_difference:test_an_additional_group_recreates_objects_that_the_api_cannot_change",
)
def _shape_never_rebuilt() -> None:
    _never(Verb.REPLACE)


@wrong(
    "wl-deleted-not-repaired",
    "does not create again what somebody has deleted",
    f"{OPERATOR}:test_deleted_objects_are_recreated",
)
@instead_of(WorkloadBackend, "_on_object")
def _deleted_not_repaired(self: WorkloadBackend, kind: str, old: Any, item: Any) -> None:
    """Do nothing."""


@wrong(
    "wl-foreign-objects-taken",
    "takes objects of others that have a name that it needs for its own",
    "test_difference:test_a_name_of_another_owner_is_an_error",
)
def _foreign_objects_taken() -> None:
    replace(difference, "controls", lambda gang, current: True)


@wrong(
    "wl-surplus-kept",
    "keeps the PodGroups of an earlier shape of a gang",
    "test_difference:test_surplus_objects_do_not_matter_for_a_gang_in_place",
)
@around(difference, "difference")
def _surplus_kept(original: Original, gang: PodGang, manifests: Iterable[Manifest], observed: Any) -> GangDifference:
    result = original(gang, manifests, observed)
    return GangDifference(tuple(c for c in result.changes if c.verb is not Verb.DELETE), result.waits_for)


@wrong(
    "wl-plain-pods-instead",
    "starts without the API, and places pods one by one",
    "test_features:test_the_operator_does_not_start_without_the_api",
)
def _plain_pods_instead() -> None:
    async def with_form(client: Any, served: features.Features) -> features.Features:
        return features.Features(served.topology, served.mnnvl, served.maps, served.kai)

    async def missing(client: Any, form: Any) -> list[Any]:
        return []

    replace(features, "with_form", with_form)
    replace(features, "_missing_resources", missing)


@mutant("operator", "says of a gang that cannot be mapped that it is placed", "WAPI-095")
@instead_of(planned, "with_refusal")
def _wl_refused_gang_placed(status: PodGangStatus, refusal: str) -> PodGangStatus:
    listed = [
        msgspec.structs.replace(condition, status="True") if condition.type == SCHEDULED else condition
        for condition in status.conditions or ()
    ]
    return msgspec.structs.replace(status, conditions=listed)


@mutant(
    "operator",
    "keeps the gates of pods whose gang was deleted before and is there again",
    "WAPI-096",
    blocks=("WAPI-087",),
)
@around(GangPlans, "startable_pods", memory=dict)
def _wl_returning_gangs_never_start(
    original: Original, first: dict[tuple[str, str], str], self: GangPlans, pods: Iterable[Pod]
) -> list[Pod]:
    allowed = []
    for pod in original(self, pods):
        gang = self._cache.gangs.get(pod.metadata.namespace, pod.metadata.label(labels.PODGANG))
        if gang is not None and first.setdefault(gang.metadata.key, gang.metadata.uid) == gang.metadata.uid:
            allowed.append(pod)
    return allowed
