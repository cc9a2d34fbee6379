"""Tests of countdowns to a termination: events that end a countdown, events that do not end it, and a restart of the
operator."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.grove import health
from conformance.grove.fields import condition, terminating, text
from conformance.history.record import Record
from conformance.testing import disruption, incarnations, predicates
from conformance.testing.disruption import CLIQUES
from conformance.testing.incarnations import Records
from conformance.testing.observed import all_of
from conformance.testing.scene import Exclusive, Recorded, Scene, SceneEnvironment, invariants, requirement

DELAY_SECONDS = 12
"""The terminationDelay, in seconds, on a machine that is not overloaded. On a slower machine, the scene needs a longer
delay."""
DELAYS: Mapping[str, str] = {"waits": "1s", "hastens": "1h"}
"""Set → its terminationDelay, for sets whose delay is not the default of this scene."""
OLDER_SETS = ("wavers", "worsens", "lasts", "waits", "hastens")
YOUNG_SET = "begins"
"""The set whose clique loses a pod soon after its creation, for TERM-020 only."""
SETS = (*OLDER_SETS, YOUNG_SET)
OLD_SECONDS = 8
"""Seconds after which the other cliques lose a pod."""
WAITING_CLIQUE = "waits-0-web"
"""The clique whose pods are bound but do not start."""
CLIQUE_BY_SET: Mapping[str, str] = {set_name: f"{set_name}-0-web" for set_name in SETS if set_name != "waits"}
"""Set → its clique that loses a pod."""
UNREADY_SETS = ("wavers", "worsens")
"""The sets whose pods keep running but are not Ready, so that the pods can recover. TERM-026 judges whether such pods
count as lost."""
BEFORE_RESTART = 2 / 3
"""The fraction of the countdown after which the operator is restarted. A later restart shows more clearly whether the
countdown starts again."""
RECOVERY_SHARE, RELAPSE_SHARE = 1 / 2, 3 / 4
"""The fractions of the countdown within which the suite makes a pod recover and then lose readiness again. The operator
must notice both in the remaining time, before the stopped countdown would be over."""


class CountdownsOverARestart(Scene):
    """Sets with three pods each on one node. One set is created later than the other sets. In each set except `waits`,
    a pod is lost for good or is no longer Ready, and the node is cordoned. No countdown of the default delay is over
    when the operator is restarted."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        nodes = env.nodes("tiny", 1)
        self.seconds = round(env.patience(DELAY_SECONDS))
        for set_name in OLDER_SETS:
            self._create(env, set_name)
        available = all_of(
            *(predicates.is_available(set_name, 1) for set_name in OLDER_SETS if set_name in CLIQUE_BY_SET)
        )
        env.wait_for("older sets available", available)
        env.wait_for("pods that do not start are bound", disruption.have_bound_pods({WAITING_CLIQUE: 3}))
        disruption.set_pod_states(env, WAITING_CLIQUE, disruption.STARTING, 3)
        env.quiet(OLD_SECONDS, OLD_SECONDS + 5, real=True)
        self._create(env, YOUNG_SET)
        env.wait_for("sets available", predicates.is_available(YOUNG_SET, 1))
        self.lost = env.history.now()
        disruption.cordon(env, nodes)
        for set_name, clique in CLIQUE_BY_SET.items():
            if set_name in UNREADY_SETS:
                disruption.set_pod_states(env, clique, disruption.STALLED, 1)
            else:
                disruption.delete_pods(env, clique, 1)
        env.wait_for("cliques breached", disruption.are_breached(CLIQUES, CLIQUE_BY_SET.values()))
        first, wavers, worsens = (breach_of(env.history, name) for name in ("lasts", "wavers", "worsens"))
        before = incarnations.uids(env.history.view(), CLIQUES)
        env.quiet(1.2, real=True)

        disruption.set_pod_states(env, CLIQUE_BY_SET["wavers"], disruption.SERVING, 1)
        disruption.set_pod_states(env, CLIQUE_BY_SET["worsens"], disruption.STALLED, 2)
        _require_in_time(env, wavers, RECOVERY_SHARE * self.seconds)
        _require_in_time(env, worsens, RECOVERY_SHARE * self.seconds)
        env.wait_for("recovered in time", disruption.are_breached(CLIQUES, [CLIQUE_BY_SET["wavers"]], "False"))
        env.quiet(1.2, real=True)
        self.relapsed = env.history.now()
        disruption.set_pod_states(env, CLIQUE_BY_SET["wavers"], disruption.STALLED, 1)
        _require_in_time(env, wavers, RELAPSE_SHARE * self.seconds)
        env.wait_for("breached again", disruption.are_breached(CLIQUES, [CLIQUE_BY_SET["wavers"]]))
        disruption.set_termination_delay(env, ["hastens"], "1s")
        env.settle("shortened delay over", incarnations.are_recreated(CLIQUES, [CLIQUE_BY_SET["hastens"]], before), 60)

        _wait_until_old(env, first, BEFORE_RESTART * self.seconds)
        _require_in_time(env, first, self.seconds)
        self.stopped, stopped = env.history.now(), env.machine.now()
        env.roles.restart("operator")
        self.restarted = env.history.now()
        if self.restarted - self.stopped > self.rest:
            env.machine.require(stopped, "the operator started while a countdown ran")
        env.settle(
            "delay over after the restart", incarnations.are_recreated(CLIQUES, [CLIQUE_BY_SET["lasts"]], before), 200
        )
        unready = [CLIQUE_BY_SET[set_name] for set_name in UNREADY_SETS]
        env.settle("delays of unready pods over", incarnations.are_recreated(CLIQUES, unready, before), 60)
        env.settle("young clique recreated", incarnations.are_recreated(CLIQUES, [CLIQUE_BY_SET["begins"]], before), 60)
        disruption.cordon(env, nodes, undo=True)
        # Pods that are not Ready but do not count as lost stay as they are.
        stays = UNREADY_SETS if env.steps["delays of unready pods over"].unmet else ()
        rest = [set_name for set_name in CLIQUE_BY_SET if set_name not in stays]
        env.wait_for("sets available again", all_of(*(predicates.is_available(set_name, 1) for set_name in rest)))

    def _create(self, env: SceneEnvironment, name: str) -> None:
        workload = env.workload("frontend", setName=name, pods=3)
        workload["spec"]["template"]["terminationDelay"] = DELAYS.get(name, f"{self.seconds}s")
        if name == "waits":
            template = workload["spec"]["template"]["cliques"][0]
            template["annotations"] = {**template.get("annotations", {}), health.HOLD_STATUS: "yes"}
        env.create(workload)

    @property
    def rest(self) -> float:
        """Return the seconds that remain of a countdown when the operator is restarted."""
        return (1 - BEFORE_RESTART) * self.seconds


@requirement("TERM-024")
def test_pods_that_have_not_started_are_not_lost(run: Recorded[CountdownsOverARestart]) -> None:
    """The pods are bound but never start."""
    run.given("pods that do not start are bound")
    counts = disruption.incarnation_counts(run.until("sets available again"), [WAITING_CLIQUE])
    run.same("cliques that the name has had", {WAITING_CLIQUE: 1}, counts)


@requirement("TERM-016", reaches=("recovered in time", "breached again"))
def test_a_recovery_ends_the_countdown(run: Recorded[CountdownsOverARestart]) -> None:
    """The pod recovers, and is lost again before the first countdown would have been over."""
    second_breach = breach_of(run.until("breached again"), "wavers")
    run.expect(
        f"deleted before {run.scene.seconds} s were over",
        False,
        _deleted_early(run, "wavers", second_breach, run.scene.relapsed),
    )


@requirement("TERM-017")
def test_a_further_loss_does_not_change_the_countdown(run: Recorded[CountdownsOverARestart]) -> None:
    """A second pod is lost. TERM-019 judges that the countdown is not longer than the countdown for the first loss."""
    first = breach_of(run.until("cliques breached"), "worsens")
    reported = _transition_times(run.until("delays of unready pods over"), "worsens", first)
    run.expect("transition times of a breach during which one more pod was lost", reported[:1], reported)
    run.expect(
        f"deleted before {run.scene.seconds} s were over", False, _deleted_early(run, "worsens", first, run.scene.lost)
    )


@requirement("TERM-018", reaches="shortened delay over")
def test_a_changed_delay_applies_to_running_countdowns(run: Recorded[CountdownsOverARestart]) -> None:
    """The delay is shortened from an hour to a second after the breach."""


@requirement("TERM-019", reaches="delay over after the restart")
def test_a_restarted_operator_continues_the_countdown(run: Recorded[CountdownsOverARestart]) -> None:
    """The operator is restarted when two thirds of the delay have passed."""
    first = breach_of(run.until("cliques breached"), "lasts")
    run.expect(
        f"deleted before {run.scene.seconds} s were over", False, _deleted_early(run, "lasts", first, run.scene.lost)
    )
    run.holds("deleted before a whole delay has passed since the restart", _deleted_in_time(run, "lasts"))


@requirement("TERM-020", reaches="young clique recreated")
def test_young_cliques_are_terminated(run: Recorded[CountdownsOverARestart]) -> None:
    """The pod is deleted as soon as the set is available, and no node has room for its successor."""
    run.given("sets available", "cliques breached")


test_invariants = invariants(CountdownsOverARestart, "INV-001", "INV-004", "INV-005")


def breach_of(history: Records, set_name: str) -> Record | None:
    """Return the record with which the last breach of a set's clique started, or None if the clique is not breached at
    the end."""
    return incarnations.condition_start(history, CLIQUES, CLIQUE_BY_SET[set_name], disruption.BREACHED, "True")


def _deleted_early(run: Recorded[CountdownsOverARestart], set_name: str, cause: Record | None, begin: float) -> bool:
    """Return whether a clique was deleted before its delay was over. Other tests judge whether the clique was deleted
    at all."""
    end = incarnations.deletions(run.until("delays of unready pods over"), CLIQUES).get(CLIQUE_BY_SET[set_name])
    return 0 <= disruption.termination_delay(cause, end, begin) < run.scene.seconds


def _deleted_in_time(run: Recorded[CountdownsOverARestart], set_name: str) -> bool | None:
    """Return whether a clique was deleted earlier than a countdown that starts with the new operator would permit. The
    new operator started after the old operator was stopped. Return None if the clique was deleted later but the new
    operator started too late for a decision."""
    end = incarnations.deletions(run.until("delay over after the restart"), CLIQUES).get(CLIQUE_BY_SET[set_name])
    seconds = run.scene.seconds
    if end is not None and end.at - run.scene.stopped < seconds:
        return True
    too_late = run.scene.restarted - run.scene.stopped > run.scene.rest
    return None if end is not None and too_late else False


def _transition_times(history: Records, set_name: str, start: Record | None) -> list[str]:
    """Return the transition times of a breach, from its first record until the clique was deleted."""
    if start is None:
        return []
    records = [record for record in history.records(CLIQUES, CLIQUE_BY_SET[set_name]) if record.seq >= start.seq]
    living = [record.object for record in records if record.uid == start.uid and not terminating(record.object)]
    return list(dict.fromkeys(text(condition(obj, disruption.BREACHED), "lastTransitionTime") for obj in living))


def _wait_until_old(env: SceneEnvironment, start: Record | None, seconds: float) -> None:
    """Wait until a countdown has lasted so long that a new countdown would end much later."""
    if start is not None and (seconds_left := start.at + seconds - env.history.now()) > 0:
        env.quiet(seconds_left, seconds_left + 5, real=True)


def _require_in_time(env: SceneEnvironment, start: Record | None, seconds: float) -> None:
    """Raise HarnessError if the suite has acted too late in a countdown for the action to take effect."""
    if start is not None:
        env.require_in_time(f"{start.name} was breached", start.at, seconds)
