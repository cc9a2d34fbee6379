"""Tests of updates with the strategy OnDelete, which wait until another client deletes pods, and of switching back to
RollingRecreate."""

from __future__ import annotations

from conformance.grove import updates
from conformance.testing import replay
from conformance.testing.scene import Recorded, requirement
from conformance.tests.update import changes
from conformance.tests.update.changes import CLIQUES, SETS
from conformance.tests.update.starts import CLIQUES_OF_O, PARTS_OF_O, WAITING, ChangesOfAllKinds, misplaced


@requirement("UPD-038", reaches="OnDelete: end reported")
def test_on_delete_reports_the_end_with_the_start(run: Recorded[ChangesOfAllKinds]) -> None:
    """The first state in which an object reports the update also reports its end."""
    span = run.until("OnDelete: end reported")
    of_set = span.records(SETS, "o")
    records = [*of_set, *(record for resource, part in PARTS_OF_O for record in span.records(resource, part))]
    selected = [str(record) for record in records if updates.selection(record.object) is not None]
    turns = [str(record) for record in of_set if updates.updating_replicas(record.object)]
    run.expect("states with a selection", [], [*selected, *turns])
    running = [str(record) for record in of_set if updates.is_running(record.object)]
    run.expect("states in which an update is reported to be running", [], running)


@requirement("UPD-038")
def test_on_delete_deletes_no_pod(run: Recorded[ChangesOfAllKinds]) -> None:
    """Two sets with OnDelete were changed."""
    deleted = [record.name for record in replay.deletions(run.between("changes", "changes at rest"))]
    prefixes = tuple(f"{set_name}-" for set_name in WAITING)
    run.expect("deleted pods under OnDelete", [], [pod for pod in deleted if pod.startswith(prefixes)])


@requirement("UPD-039")
def test_on_delete_updates_all_cliques_at_once(run: Recorded[ChangesOfAllKinds]) -> None:
    """The cliques of both replicas are judged, including members of scaling groups."""
    run.given("OnDelete: all pods Ready")
    run.expect("cliques without their template", [], misplaced(run.at("changes at rest")))


@requirement("UPD-040", reaches="OnDelete: deleted pods replaced")
def test_on_delete_replaces_deleted_pods_only(run: Recorded[ChangesOfAllKinds]) -> None:
    """The scene deletes a pod of a standalone clique and a pod of a member."""
    run.given("OnDelete: cliques have their pods", "OnDelete: replacements counted as Ready")
    before, view = run.at("OnDelete: cliques have their pods"), run.at("OnDelete: one pod replaced")
    run.expect("templates of the clique's pods", ["1", "1", "2"], changes.image_tags(view, "o-0-a"))
    run.expect("templates of the member's pods", ["1", "2"], changes.image_tags(view, "o-1-g-0-c"))
    unchanged = {
        clique: changes.uids(before, clique) - run.scene.lost <= changes.uids(view, clique) for clique in CLIQUES_OF_O
    }
    run.same("cliques that keep their other pods", dict.fromkeys(unchanged, True), unchanged)


@requirement("UPD-041", reaches=("OnDelete: one pod counted as updated", "OnDelete: all pods counted as updated"))
def test_on_delete_counts_updated_pods(run: Recorded[ChangesOfAllKinds]) -> None:
    """The scene deletes one of a clique's three pods, and later the other two."""
    run.given("OnDelete: all pods of the clique replaced")


@requirement("UPD-059", reaches="OnDelete: clique and set counted as updated")
def test_on_delete_counts_updated_cliques(run: Recorded[ChangesOfAllKinds]) -> None:
    """A clique counts as updated if its status has the hashes that its progress names."""
    clique = run.at("OnDelete: one pod replaced").get(CLIQUES, "o-0-a")
    run.expect("the clique counts as updated", False, updates.reached_hashes(clique) == updates.target_hashes(clique))
    run.given("OnDelete: all pods of the clique replaced")


@requirement("UPD-062")
def test_a_switch_to_rolling_recreate_deletes_no_pod(run: Recorded[ChangesOfAllKinds]) -> None:
    """Both sets have outdated pods, which keep running."""
    span = run.between("switch to RollingRecreate", "RollingRecreate: at rest")
    run.expect("pods deleted by the switch", [], [record.name for record in replay.deletions(span)])


@requirement("UPD-042")
def test_the_next_change_replaces_all_outdated_pods(run: Recorded[ChangesOfAllKinds]) -> None:
    """This change affects a clique that the previous change did not affect."""
    view = run.at("end")
    expected = {f"o-{index}-a": ["2"] * 3 for index in (0, 1)}
    expected |= {f"o-{index}-{rest}": tags for index in (0, 1) for rest, tags in (("q", ["3"]), ("g-0-c", ["2", "2"]))}
    run.same("templates of the pods", expected, {clique: changes.image_tags(view, clique) for clique in expected})
    new = changes.uids(run.at("RollingRecreate: at rest"), "o-0-g-0-c")
    run.expect("deleted pods of the new template", [], sorted(new - changes.uids(view, "o-0-g-0-c")))


@requirement("UPD-043", reaches="RollingRecreate: update of the other set ended")
def test_a_group_changed_under_on_delete_blocks_no_update(run: Recorded[ChangesOfAllKinds]) -> None:
    """The pods of one clique are outdated when another clique of its set is changed."""
