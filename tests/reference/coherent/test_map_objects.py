"""Tests of the objects that a layout requires: maps, gangs and their conditions, pods, cliques of scaling groups, and
startup waits."""

from __future__ import annotations

import msgspec
import pytest

from reference_impl.api.models import PodCliqueScalingGroup, PodGang, PodGangMap, StartupType
from reference_impl.plan import children, desired, gangs, labels, lines, maps, members, pods, startup
from reference_impl.plan.coherent import conditions, versions
from reference_impl.plan.components import Key, Kind
from reference_impl.plan.layout import Entry, EntryGang, Role
from reference_impl.plan.lines import MAPS, NAMES, Placement, epoch_of
from reference_impl.plan.maps import StoredMap
from tests.reference.examples import clique, disaggregated, pod

ROUTER, WORKERS = Key(Kind.CLIQUE, "router"), Key(Kind.GROUP, "workers")
E1, E2, E3 = (f"178000000000000000{number}" for number in (1, 2, 3))
ANCHOR = Entry(E1, "g1", Role.ANCHOR, {"router": 2}, {"workers": (0,)})
TAIL = Entry(E2, "g1", Role.TAIL, {}, {"workers": (1,)}, (E1,))
LAYOUT = (ANCHOR, TAIL)
FIRST, SECOND = f"llm-0-{E1}", f"llm-0-{E2}-workers-1"


def changed(image, name="router"):
    pcs = disaggregated()
    template = next(t for t in pcs.spec.template.cliques if t.name == name)
    template.spec.pod_spec = {"containers": [{"name": "main", "image": image}]}
    return pcs


def stored(pcs, contents):
    manifest = maps.manifest(pcs, 0, contents)
    manifest["metadata"] |= {"uid": "u-map", "resourceVersion": "1"}
    return msgspec.convert(manifest, PodGangMap)


def test_a_written_map_reads_back_unchanged():
    pcs = disaggregated()
    contents = versions.with_layout(None, LAYOUT, versions.templates(pcs, "g1"))
    gang_map = stored(pcs, contents)
    assert maps.read(gang_map) == contents
    assert maps.correction(maps.manifest(pcs, 0, contents), gang_map) == {}
    other = versions.with_layout(contents, (ANCHOR,), versions.templates(pcs, "g1"))
    assert [entry["epoch"] for entry in maps.correction(maps.manifest(pcs, 0, other), gang_map)["spec"]["entries"]] == [
        E1
    ]


def test_the_stored_form_follows_the_contract():
    [anchor, tail] = maps.manifest(disaggregated(), 0, StoredMap(LAYOUT))["spec"]["entries"]
    assert anchor == {
        "epoch": E1,
        "podCliqueSetGenerationHash": "g1",
        "role": "Anchor",
        "podCliques": {"router": 2},
        "pcsgReplicaIndices": {"workers": [0]},
    }
    assert (tail["role"], tail["dependsOn"], "podCliques" in tail) == ("Tail", [E1], False)


def test_entries_are_read_in_epoch_order_without_empty_members():
    gang_map = stored(disaggregated(), StoredMap(LAYOUT[::-1]))
    gang_map.spec.entries[0].pod_cliques = {"router": 0}
    gang_map.spec.entries[0].pcsg_replica_indices = {"workers": [1, 1], "others": []}
    assert maps.read(gang_map).layout == LAYOUT


def test_an_invalid_annotation_is_ignored():
    pcs = disaggregated()
    for text in ("", "[1]", '{"g1": 2}', "no json"):
        gang_map = stored(pcs, StoredMap(LAYOUT))
        gang_map.metadata.annotations = {maps.TEMPLATES: text}
        assert maps.read(gang_map) == StoredMap(LAYOUT)


def test_the_record_and_not_the_generation_determines_the_version_of_members():
    first = versions.with_layout(None, LAYOUT, versions.templates(disaggregated(), "g1"))
    pcs = changed("y")
    present = versions.templates(pcs, "g2")
    assert versions.outdated_components(pcs, first, present) == {ROUTER}
    assert versions.current_generations(pcs, first, present) == {WORKERS: frozenset({"g1"})}
    reverted = versions.templates(disaggregated(), "g3")
    assert versions.outdated_components(disaggregated(), first, reverted) == set()


def test_pods_are_created_only_in_entries_of_their_version():
    old, pcs = versions.templates(disaggregated(), "g1"), changed("y")
    present = versions.templates(pcs, "g2")
    moved = Entry(E3, "g2", Role.ANCHOR, {"router": 1})
    contents = versions.with_layout(versions.with_layout(None, LAYOUT, old), (*LAYOUT, moved), present)
    before, after = old.hashes["router"], present.hashes["router"]
    assert before != after
    fitting = [
        versions.may_create_pods(contents, entry, "router", template_hash, present)
        for entry in (ANCHOR, moved)
        for template_hash in (before, after)
    ]
    assert fitting == [True, False, False, True]


def test_a_map_forgets_generations_that_no_entry_names():
    first = versions.with_layout(None, LAYOUT, versions.templates(disaggregated(), "g1"))
    renewed = Entry(E3, "g2", Role.ANCHOR, {"router": 2}, {"workers": (0, 1)})
    assert set(versions.with_layout(first, (renewed,), versions.templates(changed("y"), "g2")).hashes) == {"g2"}


def placement(*entries):
    return Placement(MAPS, "llm-0", entries or LAYOUT)


def gang_of(name, *entries):
    pcs = disaggregated()
    [planned] = [gang for gang in gangs.planned_gangs(pcs, 0, placement(*entries), MAPS) if gang.name == name]
    manifest = gangs.manifest(pcs, planned, "gang")
    manifest["metadata"] |= {"uid": "u-gang", "resourceVersion": "1"}
    return msgspec.convert(manifest, PodGang)


def test_gangs_of_a_map_have_expected_names_labels_and_minimums():
    anchor, tail = gang_of(FIRST), gang_of(SECOND)
    tags = (labels.EPOCH, labels.GANG_ROLE, labels.GENERATION_HASH, labels.REPLICA_INDEX)
    assert [anchor.metadata.label(tag) for tag in tags] == [E1, "Anchor", "g1", "0"]
    assert [tail.metadata.label(tag) for tag in tags] == [E2, "Tail", "g1", "0"]
    assert {g.name: g.min_replicas for g in anchor.spec.podgroups} == {
        "llm-0-router": 1,
        "llm-0-workers-0-prefill": 2,
        "llm-0-workers-0-decode": 1,
    }
    assert [g.name for g in tail.spec.podgroups] == ["llm-0-workers-1-prefill", "llm-0-workers-1-decode"]


def test_a_gang_needs_at_most_its_part_of_a_clique():
    """The oldest anchor needs the whole minimum only while no other gang has pods of the clique.

    Otherwise a pod of the update would wait for that anchor if the set's strategy is switched in the meantime.
    """
    pcs = disaggregated()
    pcs.spec.template.cliques[0].spec.min_available = 3
    part = Entry(E1, "g1", Role.ANCHOR, {"router": 1})
    newer = Entry(E3, "g1", Role.ANCHOR, {"router": 2}, depends_on=(E1,))

    def minimums(*entries: Entry) -> list[int]:
        return [gang.minimums["llm-0-router"] for gang in gangs.planned_gangs(pcs, 0, placement(*entries), MAPS)]

    assert minimums(part, newer) == [1, 2]
    assert minimums(part) == [3]


def test_a_gang_waits_for_all_gangs_of_the_entries_that_it_depends_on():
    wide = Entry(E2, "g1", Role.TAIL, {}, {"workers": (1, 2)}, (E1,))
    last = Entry(E3, "g1", Role.TAIL, {}, {"workers": (3,)}, (E2,))
    gang_placement = placement(ANCHOR, wide, last)
    third = f"llm-0-{E3}-workers-3"
    assert gang_placement.awaited_gangs(SECOND) == [FIRST] and gang_placement.awaited_gangs(FIRST) == []
    assert gang_placement.awaited_gangs(third) == [SECOND, f"llm-0-{E2}-workers-2"]
    assert (
        gang_placement.dependents(FIRST) == [SECOND, f"llm-0-{E2}-workers-2"] and gang_placement.dependents(third) == []
    )
    assert gang_placement.dependents("unknown") == []


def test_a_gang_waits_for_missing_entries_but_not_for_other_generations():
    old = Entry(E1, "g0", Role.ANCHOR, {"router": 2}, {"workers": (0,)})
    assert placement(old, TAIL).awaited_gangs(SECOND) == []
    assert placement(TAIL).awaited_gangs(SECOND) == [E1]


def test_a_replica_in_two_gangs_counts_as_unassigned_until_the_layout_is_repaired():
    duplicated = Entry(E3, "g1", Role.SCALE_OUT, {}, {"workers": (1,)}, (E1,))
    assert placement(*LAYOUT, duplicated).gang_of("workers", 1) is None
    assert placement().gang_of("workers", 1) == SECOND and placement().gang_of("workers", 9) is None


@pytest.mark.parametrize("line", lines.LINES.values(), ids=lines.LINES)
def test_release_lines_distinguish_their_own_gangs(line):
    line_gangs = Placement(line, "llm-0", LAYOUT).gangs
    (other,) = {NAMES, MAPS} - {line}
    assert all(line.knows_gang("llm-0", name) and not other.knows_gang("llm-0", name) for name in line_gangs)
    assert not line.knows_gang("llm-0", "")


@pytest.mark.parametrize("name", ["s", "a-name-with-30-characters-in-it", "n" * 45])
def test_gang_names_are_valid_label_values(name):
    replica = f"{name}-12"
    for gang in (EntryGang(ANCHOR), EntryGang(TAIL, "prefill-and-decode", 1)):
        gang_name = MAPS.gang_name(replica, LAYOUT, gang)
        assert len(gang_name) <= 63 and epoch_of(replica, gang_name) == gang.entry.key
        assert gang_name != MAPS.gang_name(replica, LAYOUT, EntryGang(TAIL, "prefill-and-decode", 2))


def router_pods(count, gang=FIRST, start=0, **options):
    router = clique(children.standalone_clique(disaggregated(), 0, disaggregated().spec.template.cliques[0], MAPS))
    return [pod(router, index, gang=gang, **options) for index in range(start, start + count)]


def test_scheduled_and_ready_record_when_they_became_true():
    bound, ready = router_pods(2, node="n"), router_pods(2, node="n", ready=True)
    gang = gang_of(FIRST, Entry(E1, "g1", Role.ANCHOR, {"router": 2}))
    assert not conditions.is_operator_written(gang)
    at = [
        conditions.status(gang, gang_pods, now)
        for gang_pods, now in ((router_pods(2), "1"), (bound, "2"), (ready, "3"))
    ]
    assert [(s.last_scheduled, s.last_ready) for s in at] == [(None, None), ("2", None), ("3", "3")]
    assert [{c.type: c.reason for c in s.conditions or ()} for s in at] == [
        {"Scheduled": "PodGangNotScheduled", "Ready": "PodGangNotReady"},
        {"Scheduled": "PodGangScheduled", "Ready": "PodGangNotReady"},
        {"Scheduled": "PodGangScheduled", "Ready": "PodGangReady"},
    ]
    gang.status = at[2]
    assert conditions.is_operator_written(gang)
    lost = conditions.status(gang, bound, "4")
    assert (lost.last_scheduled, lost.last_ready) == ("3", "3")


def test_a_gang_that_was_already_scheduled_gets_a_time():
    gang, ready = gang_of(FIRST, Entry(E1, "g1", Role.ANCHOR, {"router": 2})), router_pods(2, node="n", ready=True)
    first_status = conditions.status(gang, ready, "1")
    gang.status = msgspec.structs.replace(first_status, last_scheduled=None, last_ready=None)
    second_status = conditions.status(gang, ready, "2")
    assert (second_status.last_scheduled, second_status.last_ready) == ("2", "2")


def test_pods_follow_their_gangs():
    current = router_pods(3)
    target = current[0].metadata.label(labels.TEMPLATE_HASH)
    difference = pods.difference({FIRST: 1, "other": 2}, current, target, lambda gang: True)
    assert len(difference.surplus) == 2 and all(p.metadata.label(labels.PODGANG) == FIRST for p in difference.surplus)
    remaining = {p.spec.hostname for p in current if p not in difference.surplus}
    assert [gang for _, gang in difference.missing] == ["other"] * 2
    assert not {f"llm-0-router-{index}" for index, _ in difference.missing} & remaining
    assert pods.difference({FIRST: 4}, current, target, lambda gang: False).missing == []


def test_pods_of_removed_gangs_are_deleted():
    assert len(pods.difference({}, router_pods(2), "", lambda gang: True).surplus) == 2


def test_a_moved_group_replica_is_deleted_before_it_is_recreated():
    pcs = disaggregated()
    scaled = children.scaling_group(pcs, 0, pcs.spec.template.pod_clique_scaling_groups[0])
    scaled["metadata"] |= {"uid": "u-group", "resourceVersion": "1"}
    group, [config] = msgspec.convert(scaled, PodCliqueScalingGroup), children.group_configs(pcs)

    def desired_cliques(*entries):
        return desired.desired_members(pcs, group, config, range(2), placement(*entries), MAPS).cliques

    def in_place(current, *entries):
        return members.replicas_in_place(placement(*entries), "workers", range(2), current, group)

    present = {name: clique(manifest) for name, manifest in desired_cliques(*LAYOUT).items()}
    assert not any(c.metadata.label(labels.BASE_PODGANG) for c in present.values())
    moved = Entry(E3, "g2", Role.ANCHOR, {}, {"workers": (1,)})
    of_0, of_1 = [[f"llm-0-workers-{index}-{name}" for name in ("prefill", "decode")] for index in (0, 1)]
    assert in_place(present, ANCHOR, moved) == {0: of_0}
    assert in_place(present, *LAYOUT) == {0: of_0, 1: of_1}
    assert in_place({of_1[0]: present[of_1[0]]}, *LAYOUT) == {}
    difference = members.difference(desired_cliques(ANCHOR, moved), present, lambda manifest: True)
    assert [c.metadata.name for c in difference.surplus] == of_1 and difference.missing == []
    remaining_cliques = {name: c for name, c in present.items() if c not in difference.surplus}
    missing = members.difference(desired_cliques(ANCHOR, moved), remaining_cliques, lambda manifest: True).missing
    assert [members.gang_of(m) for m in missing] == [f"llm-0-{E3}"] * 2
    assert members.difference(desired_cliques(ANCHOR, moved), remaining_cliques, lambda manifest: False).missing == []
    assert desired_cliques(ANCHOR).keys() == set(of_0), "a replica that no gang holds yet waits"


def test_pods_wait_only_for_parents_in_their_own_gang():
    pcs = disaggregated()
    pcs.spec.template.clique_startup_type = StartupType.IN_ORDER
    router, prefill, decode = pcs.spec.template.cliques
    placed_gangs = placement().gangs
    assert startup.awaited_cliques(pcs, prefill, 0, placed_gangs[FIRST]) == {"llm-0-router": 1}
    assert startup.awaited_cliques(pcs, decode, 0, placed_gangs[SECOND]) == {"llm-0-workers-1-prefill": 2}
    assert startup.awaited_cliques(pcs, prefill, 0, placed_gangs[SECOND]) == {}
    assert startup.awaited_cliques(pcs, router, 0, placed_gangs[FIRST]) == {}
