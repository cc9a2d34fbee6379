"""Which objects a layout asks for: map, gangs and their conditions, pods, cliques of scaling groups, startup waits."""

from __future__ import annotations

import msgspec

from reference_impl.api.models import (
    NamespacedName,
    PodCliqueScalingGroup,
    PodGang,
    PodGangMap,
    PodGangStatus,
    StartupType,
)
from reference_impl.plan import children, desired, labels, startup
from reference_impl.plan import gangs as plan_gangs
from reference_impl.plan.coherent import conditions, gangs, maps, members
from reference_impl.plan.coherent import pods as gang_pods
from reference_impl.plan.coherent.layout import Entry, Key, Kind
from reference_impl.plan.coherent.maps import ReplicaMap
from tests.reference.examples import clique, disaggregated, pod

ROUTER, WORKERS = Key(Kind.CLIQUE, "router"), Key(Kind.GROUP, "workers")
ANCHOR = Entry("llm-0-1", "g1", {"router": 2}, {"workers": (0,)}, anchor=True)
TAIL = Entry("llm-0-2", "g1", {}, {"workers": (1,)})
LAYOUT = (ANCHOR, TAIL)


def changed(image, name="router"):
    pcs = disaggregated()
    template = next(t for t in pcs.spec.template.cliques if t.name == name)
    template.spec.pod_spec = {"containers": [{"name": "main", "image": image}]}
    return pcs


def stored(pcs, held):
    manifest = maps.manifest(pcs, 0, held)
    manifest["metadata"] |= {"uid": "u-map", "resourceVersion": "1"}
    return msgspec.convert(manifest, PodGangMap)


def test_a_map_is_read_as_it_was_written():
    pcs = disaggregated()
    held = maps.with_layout(None, LAYOUT, maps.templates(pcs, "g1"))
    found = stored(pcs, held)
    assert maps.read(found) == held
    assert maps.correction(maps.manifest(pcs, 0, held), found) == {}
    other = maps.with_layout(held, (ANCHOR,), maps.templates(pcs, "g1"))
    assert [entry["name"] for entry in maps.correction(maps.manifest(pcs, 0, other), found)["spec"]["entries"]] == [
        "llm-0-1"
    ]


def test_an_annotation_that_is_no_record_is_ignored():
    pcs = disaggregated()
    for text in ("", "[1]", '{"g1": 2}', "no json"):
        found = stored(pcs, ReplicaMap(LAYOUT))
        found.metadata.annotations = {maps.TEMPLATES: text}
        assert maps.read(found) == ReplicaMap(LAYOUT)


def test_the_version_of_members_follows_from_the_record_not_from_the_generation():
    first = maps.with_layout(None, LAYOUT, maps.templates(disaggregated(), "g1"))
    pcs = changed("y")
    present = maps.templates(pcs, "g2")
    assert maps.outdated(pcs, first, present) == {ROUTER}
    assert maps.same(pcs, first, present) == {WORKERS: frozenset({"g1"})}
    back = maps.templates(disaggregated(), "g3")
    assert maps.outdated(disaggregated(), first, back) == set()


def test_pods_are_created_only_where_their_version_is_that_of_the_gang():
    old, pcs = maps.templates(disaggregated(), "g1"), changed("y")
    present = maps.templates(pcs, "g2")
    moved = Entry("llm-0-3", "g2", {"router": 1}, anchor=True)
    held = maps.with_layout(maps.with_layout(None, LAYOUT, old), (*LAYOUT, moved), present)
    before, after = old.hashes["router"], present.hashes["router"]
    assert before != after
    assert [maps.fits(held, entry, "router", own, present) for entry in (ANCHOR, moved) for own in (before, after)] == [
        True,
        False,
        False,
        True,
    ]


def test_a_map_forgets_generations_that_no_gang_names():
    first = maps.with_layout(None, LAYOUT, maps.templates(disaggregated(), "g1"))
    renewed = Entry("llm-0-9", "g2", {"router": 2}, {"workers": (0, 1)}, anchor=True)
    assert set(maps.with_layout(first, (renewed,), maps.templates(changed("y"), "g2")).hashes) == {"g2"}


def gang_of(entry, *, references=None, status=None):
    pcs = disaggregated()
    planned = gangs.planned(pcs, 0, entry, None)
    manifest = plan_gangs.manifest(pcs, 0, planned, "gang")
    manifest["metadata"] |= {"uid": "u-gang", "resourceVersion": "1"}
    gang = msgspec.convert(manifest, PodGang)
    for group in gang.spec.podgroups:
        group.pod_references = [
            NamespacedName(namespace="ns", name=name) for name in (references or {}).get(group.name, ())
        ]
    gang.status = status
    return gang


def test_gangs_of_a_map_have_their_labels_and_minimums():
    anchor, tail = gang_of(ANCHOR), gang_of(TAIL)
    assert (anchor.metadata.labels or {})[labels.GENERATION_HASH] == "g1"
    assert anchor.metadata.label(labels.ANCHOR) == "true" and not tail.metadata.label(labels.ANCHOR)
    assert {g.name: g.min_replicas for g in anchor.spec.podgroups} == {
        "llm-0-router": 1,
        "llm-0-workers-0-prefill": 2,
        "llm-0-workers-0-decode": 1,
    }
    assert [g.name for g in tail.spec.podgroups] == ["llm-0-workers-1-prefill", "llm-0-workers-1-decode"]


def test_standalone_cliques_have_no_minimum_once_the_gang_was_scheduled():
    seen = gang_of(ANCHOR, status=PodGangStatus(phase="Running", last_scheduled="2026-01-01T00:00:00Z"))
    assert gangs.planned(disaggregated(), 0, ANCHOR, seen).minimums == {
        "llm-0-router": 0,
        "llm-0-workers-0-prefill": 2,
        "llm-0-workers-0-decode": 1,
    }


def test_a_gang_with_fewer_pods_than_the_minimum_needs_only_those():
    pcs = disaggregated()
    pcs.spec.template.cliques[0].spec.min_available = 3
    assert gangs.ready_minimums(pcs, 0, ANCHOR)["llm-0-router"] == 2


def test_a_gang_depends_on_the_anchors_of_its_generation_or_on_all():
    newer, alone = Entry("llm-0-3", "g2", {"router": 1}, anchor=True), Entry("llm-0-4", "g3", {}, {"workers": (2,)})
    layout = (ANCHOR, TAIL, newer, alone)
    assert gangs.dependencies(layout, TAIL) == ["llm-0-1"]
    assert gangs.dependencies(layout, alone) == ["llm-0-1", "llm-0-3"]
    assert gangs.dependencies(layout, newer) == []
    assert gangs.dependencies((TAIL,), TAIL) == []


def test_dependencies_hold_for_good_but_not_for_gangs_that_do_not_exist():
    scheduled = gang_of(ANCHOR, status=PodGangStatus(phase="Pending", last_scheduled="2026-01-01T00:00:00Z"))
    assert gangs.may_start(LAYOUT, TAIL, {"llm-0-1": scheduled}.get)
    assert not gangs.may_start(LAYOUT, TAIL, {"llm-0-1": gang_of(ANCHOR)}.get)
    assert not gangs.may_start(LAYOUT, TAIL, {}.get)
    assert gangs.may_start(LAYOUT, ANCHOR, {}.get)


def router_pods(count, gang="llm-0-1", start=0, **how):
    router = clique(
        children.standalone_clique(disaggregated(), 0, disaggregated().spec.template.cliques[0], mapped=True)
    )
    return [pod(router, index, gang=gang, **how) for index in range(start, start + count)]


def test_scheduled_and_ready_are_dated_when_they_first_hold():
    entry = Entry("llm-0-1", "g1", {"router": 2}, anchor=True)
    bound, ready = router_pods(2, node="n"), router_pods(2, node="n", ready=True)
    gang = gang_of(entry)
    minimums = gangs.ready_minimums(disaggregated(), 0, entry)
    at = [
        conditions.status(gang, minimums, found, now)
        for found, now in ((router_pods(2), "1"), (bound, "2"), (ready, "3"))
    ]
    assert [(s.last_scheduled, s.last_ready) for s in at] == [(None, None), ("2", None), ("3", "3")]
    assert [{c.type: c.reason for c in s.conditions or ()} for s in at] == [
        {"Scheduled": "PodGangNotScheduled", "Ready": "PodGangNotReady"},
        {"Scheduled": "PodGangScheduled", "Ready": "PodGangNotReady"},
        {"Scheduled": "PodGangScheduled", "Ready": "PodGangReady"},
    ]
    gang.status = at[2]
    lost = conditions.status(gang, minimums, bound, "4")
    assert (lost.last_scheduled, lost.last_ready) == ("3", "3")


def test_an_adopted_gang_that_is_scheduled_already_is_dated():
    entry = Entry("llm-0", "g1", {"router": 2}, anchor=True)
    gang, ready = gang_of(entry), router_pods(2, gang="llm-0", node="n", ready=True)
    once = conditions.status(gang, {"llm-0-router": 1}, ready, "1")
    gang.status = msgspec.structs.replace(once, last_scheduled=None, last_ready=None)
    again = conditions.status(gang, {"llm-0-router": 1}, ready, "2")
    assert (again.last_scheduled, again.last_ready) == ("2", "2")


def test_pods_follow_their_gangs():
    found = router_pods(3)
    target = found[0].metadata.label(labels.TEMPLATE_HASH)
    what = gang_pods.difference({"llm-0-1": 1, "llm-0-3": 2}, found, target, lambda gang: True)
    assert len(what.surplus) == 2 and all(p.metadata.label(labels.PODGANG) == "llm-0-1" for p in what.surplus)
    kept = {p.spec.hostname for p in found if p not in what.surplus}
    assert [gang for _, gang in what.missing] == ["llm-0-3"] * 2
    assert not {f"llm-0-router-{index}" for index, _ in what.missing} & kept
    assert gang_pods.difference({"llm-0-1": 4}, found, target, lambda gang: False).missing == []


def test_pods_of_gangs_that_are_no_more_are_deleted():
    assert len(gang_pods.difference({}, router_pods(2), "", lambda gang: True).surplus) == 2


def test_a_replica_of_a_group_that_moves_is_deleted_before_it_is_recreated():
    pcs = disaggregated()
    scaled = children.scaling_group(pcs, 0, pcs.spec.template.pod_clique_scaling_groups[0])
    scaled["metadata"] |= {"uid": "u-group", "resourceVersion": "1"}
    group = msgspec.convert(scaled, PodCliqueScalingGroup)

    def wanted(*layout):
        placed = {index: entry for entry in layout for index in entry.groups.get("workers", ())}
        return desired.of_group(pcs, group, mapped=placed).cliques

    present = {name: clique(manifest) for name, manifest in wanted(ANCHOR, TAIL).items()}
    assert not any(c.metadata.label(labels.BASE_PODGANG) for c in present.values())
    moved = Entry("llm-0-3", "g2", {}, {"workers": (1,)}, anchor=True)
    of_0, of_1 = [[f"llm-0-workers-{index}-{name}" for name in ("prefill", "decode")] for index in (0, 1)]
    assert members.in_place({0: ANCHOR, 1: moved}, present, group) == {0: of_0}
    assert members.in_place({0: ANCHOR, 1: TAIL}, present, group) == {0: of_0, 1: of_1}
    assert members.in_place({0: ANCHOR, 1: TAIL}, {of_1[0]: present[of_1[0]]}, group) == {}
    what = members.difference(wanted(ANCHOR, moved), present, lambda manifest: True)
    assert [c.metadata.name for c in what.surplus] == ["llm-0-workers-1-prefill", "llm-0-workers-1-decode"]
    assert what.missing == [] and what.relabelled == []
    rest = {name: c for name, c in present.items() if c not in what.surplus}
    missing = members.difference(wanted(ANCHOR, moved), rest, lambda manifest: True).missing
    assert [members.gang_of(m) for m in missing] == ["llm-0-3"] * 2
    assert members.difference(wanted(ANCHOR, moved), rest, lambda manifest: False).missing == []


def test_pods_wait_for_parents_in_their_own_gang_only():
    pcs = disaggregated()
    pcs.spec.template.clique_startup_type = StartupType.IN_ORDER
    router, prefill, decode = pcs.spec.template.cliques
    assert startup.waits(pcs, prefill, 0, ANCHOR) == {"llm-0-router": 1}
    assert startup.waits(pcs, decode, 0, TAIL) == {"llm-0-workers-1-prefill": 2}
    assert startup.waits(pcs, prefill, 0, TAIL) == {}
    assert startup.waits(pcs, router, 0, ANCHOR) == {}
