"""Tests of an update to a version that never becomes Ready. The update waits, blocks scaling, and can be replaced by
another update."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from conformance.grove import labels, pods, updates
from conformance.grove.fields import label, name, uid
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.dry_run import Reply
from conformance.testing import predicates
from conformance.testing.scene import Recorded, invariants, requirement
from conformance.tests.coherent import sets
from conformance.tests.coherent.never_ready import SCALE_TARGETS, NeverReady
from conformance.tests.coherent.sets import SETS


@requirement("COHR-060")
def test_the_update_waits(run: Recorded[NeverReady]) -> None:
    """maxUnavailable has its default, which is minAvailable. Entries that hold only d are not judged, because an update
    of other components may give them the new generation immediately."""
    run.given("deployed")
    first_sub_step = _has_lost_at_most(6, run.scene.initial_pods)
    run.always("no more than the first sub-step is replaced", first_sub_step, after="change", until="stuck")
    view = run.at("stuck")
    generation = updates.generation_hash(view.get(SETS, "s"))
    new_pods = [
        entry.sizes()
        for entry in sets.layout(view, "s", run.scene.updated_replica)
        if entry.generation == generation and any(key.name in ("f", "p") for key in entry.components())
    ]
    run.expect("gangs of the new version", ["{f2, p×2}"], new_pods)
    replaced = run.scene.initial_pods.keys() - sets.clique_by_uid(sets.pods_of_set(view, "s")).keys()
    run.expect("pods that were replaced", 6, len(replaced))
    run.expect("the update has ended", False, updates.has_ended(view.get(SETS, "s")))


@requirement("COHR-061", reaches="reason reported")
def test_the_reason_is_reported(run: Recorded[NeverReady]) -> None:
    """The wording is not specified."""
    run.given("first sub-step")


@requirement("COHR-062")
def test_gangs_are_not_terminated(run: Recorded[NeverReady]) -> None:
    """Two of three pods of the set `tight` have been replaced by pods that are not Ready."""
    run.given("first sub-step")
    new_pods = sets.clique_by_uid(
        pod for pod in sets.pods_of_set(run.at("first sub-step"), "tight") if sets.image_tag(pod) == "2"
    )
    remaining = sets.clique_by_uid(sets.pods_of_set(run.at("stuck"), "tight"))
    current_pods = {pod_uid: remaining.get(pod_uid, "") for pod_uid in new_pods}
    run.same("new pods of tight, two termination delays later", new_pods, current_pods)


@requirement("COHR-050")
def test_children_cannot_be_scaled(run: Recorded[NeverReady]) -> None:
    """Cliques and groups of a component out of scope are judged as well."""
    run.given("first sub-step")
    for description, reply in _replies_for_children(run.scene.scale_replies, "{updated}").items():
        run.expect(f"{description} is scaled", "refused", "refused" if reply.refused else str(reply))


@requirement("COHR-113")
def test_children_of_other_replicas_cannot_be_scaled(run: Recorded[NeverReady]) -> None:
    """The update of these replicas has not started."""
    run.given("first sub-step")
    for description, reply in _replies_for_children(run.scene.scale_replies, "{other}").items():
        run.expect(f"{description} is scaled", "refused", "refused" if reply.refused else str(reply))


@requirement("COHR-051")
def test_the_set_cannot_be_scaled(run: Recorded[NeverReady]) -> None:
    """Only the merged text has this rule for the set."""
    run.given("first sub-step")
    reply = run.scene.scale_replies["the set"]
    run.expect("the set is scaled", "refused", "refused" if reply.refused else str(reply))


@requirement("COHR-052")
def test_the_scale_subresource_is_no_way_around(run: Recorded[NeverReady]) -> None:
    """The changes are those of COHR-050 and COHR-113."""
    run.given("first sub-step")
    for description, reply in _replies_for_children(run.scene.subresource_replies).items():
        run.expect(f"{description} is scaled through /scale", "refused", "refused" if reply.refused else str(reply))


@requirement("COHR-053")
def test_other_changes_are_accepted(run: Recorded[NeverReady]) -> None:
    """The changes are an annotation and, if admission accepts it before the update, another terminationDelay."""
    run.given("first sub-step")
    pairs = zip(run.scene.harmless_replies_at_rest, run.scene.harmless_replies, strict=True)
    replies = [reply for before, reply in pairs if before.accepted]
    run.expect("changes that leave replicas as they are", ["accepted"], sorted({str(reply) for reply in replies}))


@requirement("COHR-054")
def test_the_refusal_says_why(run: Recorded[NeverReady]) -> None:
    """The expected message is the message of upstream's prototype."""
    run.given("first sub-step")
    unexplained = {
        description: reply.message
        for description, reply in _replies_for_children(run.scene.scale_replies).items()
        if reply.refused
        and ("coherent update is in progress" not in reply.message or "s" not in reply.message.split("progress")[-1])
    }
    run.expect("refusals that do not say why", {}, unexplained)


@requirement("COHR-104")
def test_the_refusal_names_the_field(run: Recorded[NeverReady]) -> None:
    """The field must be in the message."""
    run.given("first sub-step")
    messages = {
        description: reply.message
        for description, reply in _replies_for_children(run.scene.scale_replies).items()
        if reply.refused and "spec.replicas" not in reply.message
    }
    run.expect("refusals that do not name the field", {}, messages)


@requirement("COHR-055", reaches="scaled")
def test_scaling_is_possible_after_the_update(run: Recorded[NeverReady]) -> None:
    """A scaling group is scaled out."""
    run.given("fixed")
    run.expect("a change of replicas", "accepted", str(run.scene.scale_reply))


@requirement("COHR-063")
def test_what_is_broken_is_replaced_first(run: Recorded[NeverReady]) -> None:
    """Two pods of f are not Ready, and one was lost."""
    front = run.scene.front_clique
    ready_before = _ready_count(run.at("fix"), front)
    run.always("as many Ready pods of f as before", _has_ready_pods(front, ready_before), after="fix", until="fixed")


@requirement("COHR-107", reaches="fixed")
def test_a_version_that_never_becomes_ready_is_replaced(run: Recorded[NeverReady]) -> None:
    """The update to that version has reached its first sub-step, in the first of two replicas."""
    run.given("first sub-step")
    run.expect("images", {"dm": ["1"], "f": ["3"], "pl": ["3"], "pw": ["3"]}, sets.image_tags(run.at("at rest"), "s"))


@requirement("COHR-066", reaches="lost pod of a new gang recreated")
def test_a_lost_pod_of_a_new_gang_is_recreated(run: Recorded[NeverReady]) -> None:
    """The new version never becomes Ready."""
    run.given("first sub-step")
    gang = label(run.scene.new_pod, labels.GANG)
    images = [
        sets.image_tag(pod)
        for pod in predicates.pods_of(run.at("pods lost"), run.scene.front_clique)
        if label(pod, labels.GANG) == gang
    ]
    run.expect("images in the new gang", ["2", "2"], images)


@requirement("COHR-067")
def test_a_lost_pod_of_an_old_gang_is_not_recreated(run: Recorded[NeverReady]) -> None:
    """Another pod of the same clique and gang remains."""
    run.given("first sub-step")
    gang = label(run.scene.old_pod, labels.GANG)
    remaining = [
        name(pod)
        for pod in predicates.pods_of(run.at("pods lost"), run.scene.front_clique)
        if label(pod, labels.GANG) == gang
    ]
    run.expect("pods of f in the old gang", 1, len(remaining))


@requirement("COHR-068", reaches="lost pod of another component recreated")
def test_a_lost_pod_of_another_component_is_recreated(run: Recorded[NeverReady]) -> None:
    """The update is stuck at that time."""
    run.given("first sub-step")
    images = {
        uid(pod): sets.image_tag(pod) for pod in predicates.pods_of(run.at("pods lost"), run.scene.unchanged_clique)
    }
    run.expect("images", ["1"], sorted(images.values()))


@requirement("COHR-071")
def test_replicas_are_updated_one_at_a_time(run: Recorded[NeverReady]) -> None:
    """The second replica waits while the first replica is stuck, and until the first replica is updated to the third
    version."""
    run.given("first sub-step")
    uids_of_other = {
        pod
        for pod, clique in run.scene.initial_pods.items()
        if not clique.startswith(f"s-{run.scene.updated_replica}-")
    }
    run.always(
        "no pod of the other replica is replaced", _has_lost_at_most(0, uids_of_other), after="change", until="fix"
    )
    run.given("fixed")
    running = [record.object for record in run.until("at rest").records(SETS) if updates.is_running(record.object)]
    concurrent_turns = {tuple(turns) for pcs in running if len(turns := updates.updating_replicas(pcs)) > 1}
    run.expect("replicas that had their turn together", [], sorted(concurrent_turns))
    order: dict[str, list[int | None]] = {}
    for pcs in running:
        turns = order.setdefault(updates.generation_hash(pcs), [])
        turns += [index for index in updates.updating_replicas(pcs) if turns[-1:] != [index]]
    repeated = {index for turns in order.values() for index in turns if turns.count(index) > 1}
    run.expect("replicas whose turn came again, as it had not ended", set(), repeated)


test_invariants = invariants(
    NeverReady, "INV-011", "INV-013", "INV-014", "INV-015", "INV-016", "INV-020", "INV-021", "INV-022"
)


def _replies_for_children(replies: Mapping[str, Reply], replica: str = "") -> dict[str, Reply]:
    """Return the replies to changes to PodCliques and PodCliqueScalingGroups. With `replica` (`{updated}` or
    `{other}`), return only the replies for that replica of the set."""
    children = {key for key, (resource, target, _) in SCALE_TARGETS.items() if resource != SETS and replica in target}
    return {description: reply for description, reply in replies.items() if description in children}


def _ready_count(view: View, clique: str) -> int:
    return sum(map(pods.is_ready, predicates.pods_of(view, clique)))


@predicate
def _has_ready_pods(view: View, clique: str, minimum: int) -> bool | Unmet:
    ready = _ready_count(view, clique)
    return ready >= minimum or Unmet(f"{ready} pods of {clique} are Ready, {minimum} were")


@predicate
def _has_lost_at_most(view: View, maximum: int, initial_uids: Collection[str]) -> bool | Unmet:
    """At most `maximum` of these initial pods of the set no longer exist."""
    lost = set(initial_uids) - sets.clique_by_uid(sets.pods_of_set(view, "s")).keys()
    return len(lost) <= maximum or Unmet(f"{len(lost)} of {len(initial_uids)} pods are gone")
