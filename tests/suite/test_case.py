"""Tests of `case`: timeouts, the test's writes, and operators that do not start. Needs no cluster; time is scripted."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from conformance.cluster.audit import AuditLog
from conformance.errors import HarnessError
from conformance.implementation import loading
from conformance.implementation.descriptor import Role
from conformance.implementation.driver import ClusterFacts, Driver, NotStarted
from conformance.implementation.fields import Upgrade
from conformance.invariants.result import RuleResult
from conformance.suite.outcomes import ledger
from conformance.suite.outcomes.checks import Blocked, CheckFailed, Checks
from conformance.suite.scenes.case import Case
from conformance.suite.scenes.machine import Machine
from conformance.suite.scenes.scene import SceneEnded
from conformance.suite.scenes.silence import Silence
from conformance.suite.scenes.wait_budget import WaitBudget
from conformance.suite.scenes.waits import MIN_QUIET_SECONDS, OWN_WRITE_SECONDS
from kube.errors import ApiError
from tests.history.scripted import Scripted
from tests.history.story import SPACE, Story


class Api:
    """An API client whose patches all return resource version 200."""

    def of_plural(self, resource: str) -> Any:
        return SimpleNamespace(namespaced=True)

    def patch(self, *given: object) -> Any:
        return {"metadata": {"resourceVersion": "200"}}

    def delete(self, *given: object) -> None:
        pass

    create_all = evict = delete


JUDGED = SimpleNamespace(settle=0, roles=frozenset({Role.OPERATOR}))


@pytest.fixture
def story() -> Story:
    return Story(Scripted())


def play(
    story: Story,
    scale: float = 1,
    driver: object = None,
    require_healthy: Callable[[bool], None] = lambda thoroughly: None,
    silence: Silence | None = None,
    audit: AuditLog | None = None,
    unplayed: Mapping[str, str] = MappingProxyType({}),
    machine: Machine | None = None,
) -> Case:
    return Case(
        checks=Checks("test", ["AA-001"], lambda check: None),
        namespace=SPACE,
        pool="pool",
        history=story.history,
        api=Api(),
        driver=driver
        or SimpleNamespace(descriptor=JUDGED, failures=tuple, failures_at_start=0, logs=dict, last_log_lines=str),
        kubeconfig=Path("kubeconfig"),
        require_healthy=require_healthy,
        wait_budget=WaitBudget(),
        time_scale=scale,
        randomness=random.Random(0),
        silence=silence,
        audit=audit,
        unplayed=unplayed,
        machine=machine,
    )


def later(story: Story, moment: float, name: str, **options: Any) -> None:
    def append() -> None:
        story.keep_pace()
        story.pod(name, after=0, **options)

    story.log.later(moment, append)


@pytest.mark.parametrize(
    ("roles", "is_lifeless"), [(("operator", "gang-scheduler"), False), (("gang-scheduler",), True)]
)
def test_a_scheduler_is_alive_once_it_has_bound_something(story: Story, roles: Any, is_lifeless: bool) -> None:
    budget = WaitBudget(roles)
    story.gang("s-0", {"s-0-a": (1, ["a1"])})  # created by the operator, which may not be the judged implementation
    story.pod("a1", gang="s-0", clique="s-0-a")
    budget.timed_out(story.history)
    assert budget.lifeless_reason == ("the implementation has not bound any pod in this run" if is_lifeless else "")
    story.pod("a1", gang="s-0", clique="s-0-a", node="n1")
    budget.timed_out(story.history)
    assert budget.lifeless_reason == "" and budget.limit(30, 1) == 30


@pytest.mark.parametrize("looked", [False, True])
def test_objects_that_are_deleted_before_a_timeout_are_a_sign_of_life(story: Story, looked: bool) -> None:
    """Objects that were deleted before the timeout count as well, and so do objects of an earlier test."""
    budget = WaitBudget()
    story.gang("s-0", {"s-0-a": (1, ["a1"])})
    story.delete("podgangs", "s-0")
    if looked:  # at the end of an earlier test, in which no wait timed out
        budget.look(story.history)
        story = Story(Scripted())
    budget.timed_out(story.history)
    assert budget.lifeless_reason == "" and budget.limit(30, 1) == 30


def test_the_first_wait_for_nothing_names_the_last_words(story: Story) -> None:
    driver = SimpleNamespace(
        descriptor=JUDGED,
        failures=tuple,
        failures_at_start=0,
        logs=dict,
        last_log_lines=lambda: "its log ends with: no queue",
    )
    case = play(story, driver=driver)
    with pytest.raises(CheckFailed):
        case.until("AA-001", "a pod", lambda view: None, 5)
    [check] = case.checks.recorded
    assert check.seen.splitlines()[0] == (
        "the implementation has not made or written anything in this run; its log ends with: no queue"
    )


def test_a_patch_returns_when_the_history_has_it(story: Story) -> None:
    story.pod("a1", revision=150)
    later(story, 0.3, "a1", revision=160, node="n1")  # by another client, before the patch
    later(story, 0.6, "a1", revision=200, node="n1", ready=True)
    play(story).patch("pods", "a1", {})
    assert story.log.now() == 0.6
    assert story.history.view().record("pods", "a1").revision == 200


def test_a_wait_for_a_patch_ends_if_a_later_write_is_recorded(story: Story) -> None:
    story.pod("a1", revision=150)
    later(story, 0.3, "a1", revision=201)
    play(story).patch("pods", "a1", {})
    assert story.log.now() == 0.3


def test_a_patch_of_an_unrecorded_object_is_not_waited_for(story: Story) -> None:
    play(story).patch("configmaps", "a", {})
    assert story.log.now() == 0


def test_the_wait_for_a_patch_is_limited(story: Story) -> None:
    story.pod("a1", revision=150)
    play(story).patch("pods", "a1", {})
    assert story.log.now() == OWN_WRITE_SECONDS


@pytest.mark.parametrize("missing_ok", [True, False])
def test_a_patch_of_a_deleted_object(story: Story, missing_ok: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod that a scene holds may be replaced before the scene releases it."""

    def deleted(*_: object) -> None:
        raise ApiError(404, "NotFound", 'pods "a1" not found', {}, None)

    case = play(story)
    monkeypatch.setattr(Api, "patch", deleted)
    if missing_ok:
        assert case.patch("pods", "a1", {}, missing_ok=True) == {} and story.log.now() == 0
    else:
        with pytest.raises(Blocked, match="NotFound"):
            case.patch("pods", "a1", {})


@pytest.mark.parametrize(
    ("scale", "real", "ends"), [(1, False, 30), (0.1, False, 3), (0.1, True, 30), (2, False, 60), (2, True, 60)]
)
def test_the_time_scale_shortens_no_real_wait(story: Story, scale: float, real: bool, ends: float) -> None:
    case = play(story, scale)
    case.settled("nothing", lambda view: False, 30, real=real)
    assert story.log.now() == pytest.approx(ends)


def test_the_time_scale_shortens_no_wait_in_which_something_moves(story: Story) -> None:
    for moment in range(1, 20):
        later(story, moment, "a1")
    later(story, 20, "a1", ready=True)
    case = play(story, 0.1)
    case.until("AA-001", "the pod is ready", lambda view: bool(view.get("pods", "a1")["status"].get("conditions")), 30)
    assert story.log.now() == 20


def test_an_until_in_real_time_fails_when_that_is_over(story: Story) -> None:
    with pytest.raises(CheckFailed):
        play(story, 0.1).until("AA-001", "a pod", lambda view: view.get("pods", "a1") is not None, 30, real=True)
    assert story.log.now() == 30


@pytest.mark.parametrize(
    ("scale", "real", "lasts"), [(1, False, 2), (0.1, False, MIN_QUIET_SECONDS), (0.1, True, 2), (2, False, 4)]
)
def test_a_silence_has_a_minimum_length(story: Story, scale: float, real: bool, lasts: float) -> None:
    play(story, scale).quiet(2, real=real)
    assert story.log.now() == pytest.approx(lasts)


@pytest.mark.parametrize(("scale", "real", "lasts"), [(1, False, 5), (0.1, True, 5), (0.1, False, 5), (2, False, 10)])
def test_a_silence_is_as_long_as_the_judged_scheduler_needs(
    story: Story, scale: float, real: bool, lasts: float
) -> None:
    driver = SimpleNamespace(
        descriptor=SimpleNamespace(settle=5, roles=JUDGED.roles), failures=tuple, failures_at_start=0, logs=dict
    )
    play(story, scale, driver).quiet(2, 2, real=real)
    assert story.log.now() == pytest.approx(lasts)


def test_only_the_requested_resources_must_be_silent(story: Story) -> None:
    later(story, 1, "a1")
    case = play(story)
    case.quiet(2, of=("podgangs",))
    assert story.log.now() == 2
    later(story, 2.5, "a2")
    case.quiet(2)
    assert story.log.now() == 4.5


def test_a_wait_ends_at_once_where_the_cluster_does_not_work(story: Story) -> None:
    def require_healthy(thoroughly: bool) -> None:
        if story.log.now() >= 2:
            raise HarnessError("the cluster is not well: etcd does not run")

    case = play(story, require_healthy=require_healthy)
    for act in (lambda: case.until("AA-001", "x", lambda view: None), lambda: case.settled("x", lambda view: False)):
        with pytest.raises(HarnessError, match="etcd does not run"):
            act()
    assert story.log.now() < 5 and case.checks.recorded == []


class Broken:
    """A driver whose operators do not start."""

    descriptor = SimpleNamespace(name="mine", version="2", earlier=lambda to: None, upgrades=(), roles=JUDGED.roles)

    failures_at_start = 0

    def failures(self) -> tuple[()]:
        return ()

    def logs(self) -> dict[str, Path]:
        return {}

    def refuse(self, *given: object) -> None:
        raise NotStarted(Role.OPERATOR, "", "mine", "ended with exit code 3")

    enable_leader_election = add_second = replace_operator = refuse

    @property
    def operators(self) -> Broken:
        return self


@pytest.mark.parametrize(
    ("begin", "subject"),
    [
        (lambda roles: roles.restart_with_election, "an operator that leads by its Lease starts"),
        (lambda roles: roles.start_second_operator, "a second operator starts"),
        (lambda roles: roles.upgrade, "mine 2 starts"),
        (lambda roles: lambda: roles.downgrade(Upgrade("old", "the old one", {})), "the old one starts"),
    ],
)
def test_an_operator_that_does_not_start_is_named(story: Story, begin: Any, subject: str) -> None:
    driver = Broken()
    driver.controls = lambda role: True
    case = play(story, driver=driver)
    with pytest.raises(Blocked, match=f"{subject}: mine: the operator ended with exit code 3") as blocked:
        begin(case.roles)()
    assert blocked.value.cause == "implementation" and case.checks.recorded == []


RUNNING = """\
apiVersion: conformance.grove.io/v1alpha1
kind: Implementation
name: there
version: "1"
roles: [operator, gang-scheduler]
schedulerName: there
start: running
"""


@pytest.mark.parametrize(
    "act",
    [
        lambda roles: roles.kill("operator"),
        lambda roles: roles.stop("operator"),
        lambda roles: roles.restart("gang-scheduler"),
        lambda roles: roles.restart_with_election(),
        lambda roles: roles.hand_over(kill=True),
    ],
    ids=["kill", "stop", "restart", "elect", "hand over"],
)
def test_a_role_that_the_driver_does_not_control_blocks_the_test(story: Story, tmp_path: Path, act: Any) -> None:
    (tmp_path / "there.yaml").write_text(RUNNING)
    facts = ClusterFacts(tmp_path / "kubeconfig", tmp_path, {}, lambda index: 0)
    case = play(story, driver=Driver(loading.load(str(tmp_path / "there.yaml")), facts))
    with pytest.raises(
        Blocked, match=r"the driver does not control the process of the (operator|gang-scheduler)"
    ) as it:
        act(case.roles)
    assert it.value.cause == "circumstances"
    assert case.roles.pause("gang-scheduler") is False


def test_webhooks_that_the_driver_has_not_installed_cannot_be_removed(story: Story, tmp_path: Path) -> None:
    (tmp_path / "there.yaml").write_text(RUNNING)
    facts = ClusterFacts(tmp_path / "kubeconfig", tmp_path, {}, lambda index: 0)
    case = play(story, driver=Driver(loading.load(str(tmp_path / "there.yaml")), facts))
    with pytest.raises(Blocked, match="the driver has not installed the webhooks") as it, case.roles.without_hooks():
        pytest.fail("the test went on")
    assert it.value.cause == "circumstances"


def test_an_operator_that_died_before_it_was_killed_has_crashed(story: Story) -> None:
    deaths: list[str] = []
    driver = SimpleNamespace(
        descriptor=JUDGED,
        failures=lambda: deaths,
        failures_at_start=0,
        logs=dict,
        controls=lambda role: True,
        kill=lambda role: deaths.append("mine: the operator exited with code 2"),  # noticed at the kill
    )
    case = play(story, driver=driver)
    case.roles.kill("operator")
    assert case.roles.exited_processes() == "mine: the operator exited with code 2"
    with pytest.raises(SceneEnded, match="at rest: mine: the operator exited with code 2"):
        case.require_alive("at rest")


def test_a_process_that_ends_before_the_first_step_is_dead_in_the_test(story: Story) -> None:
    """The death is noticed at the start of the scene, after the process has been started for the test."""
    deaths = ["mine: the operator exited with code 2"]
    driver = SimpleNamespace(
        descriptor=JUDGED, failures=lambda: deaths, failures_at_start=0, logs=dict, last_log_lines=str
    )
    assert play(story, driver=driver).roles.exited_processes() == deaths[0]


@pytest.mark.parametrize(("died", "seconds"), [([], 20), (["mine: the gang-scheduler exited with code 2"], 0)])
def test_a_wait_ends_when_a_process_has_died(story: Story, died: list[str], seconds: float) -> None:
    deaths: list[str] = []
    case = play(
        story,
        driver=SimpleNamespace(
            descriptor=JUDGED, failures=lambda: deaths, failures_at_start=0, logs=dict, last_log_lines=str
        ),
    )
    deaths += died
    case.settled("pods are bound", lambda view: None, 20)
    assert story.log.now() == pytest.approx(seconds, abs=1)


def test_pods_that_the_test_deletes_or_outdates_are_excused(story: Story) -> None:
    case = play(story)
    uids = {name: story.pod(name).uid for name in ("a1", "a2", "a3")}
    case.delete("pods", "a1")
    case.outdate("a2")
    case.delete("podcliques", "a3")
    story.delete("pods", "a1")
    recreated = story.pod("a1")
    case.complete_origins()
    assert story.history.origins.excused == {uids["a1"], uids["a2"]} and recreated.uid not in uids.values()


def test_a_verdict_without_records_has_the_current_time(story: Story) -> None:
    story.pod("a1")
    case = play(story)
    case.holds("AA-001", "a rule", RuleResult("", "a rule", False, "because"))
    case.holds("AA-001", "a rule", RuleResult("", "a rule", True))
    case.holds("AA-001", "a rule", False)
    case.holds("AA-001", "a rule", True)
    now = round(story.history.now(), 3)
    assert [check.at for check in case.checks.recorded] == [now, None, now, None]


def test_a_failed_comparison_has_the_time_of_the_last_change(story: Story) -> None:
    first, second, third = story.pod("a1"), story.pod("b1"), story.pod("a1", node="n1")
    story.pod("c1")
    case = play(story)
    case.expect("AA-001", "nodes of pods", {"a1": "", "b1": "n1"}, {"a1": "", "b1": ""})
    case.expect("AA-001", "nodes of pods", ["b1"], ["b1", "a1"])
    case.expect("AA-001", "what a1 says", "x", "y")
    case.expect("AA-001", "an answer", "x", "y")
    case.expect("AA-001", "an answer", "x", "x")
    now = round(story.history.now(), 3)
    assert first.at < second.at < third.at
    assert [check.at for check in case.checks.recorded] == [second.at, third.at, third.at, now, None]


def test_a_failure_names_the_first_wrong_record(story: Story) -> None:
    first, second = story.pod("a1"), story.pod("b1")
    case = play(story)
    case.holds("AA-001", "a rule", RuleResult("", "a rule", False, "because", (first, second)))
    case.expect("AA-001", "states that are wrong", [], [str(second), str(first)])
    case.expect("AA-001", "the state then", "x", "y", at=second)
    case.expect("AA-001", "nodes of pods", {"a1": "n1"}, {"a1": ""})  # only the last change is known
    case.expect("AA-001", "the state then", "x", "x", at=second)
    deviations = [ledger.Deviation(f"pods/{record.name}", record.revision) for record in (second, first, second)]
    assert [check.deviation for check in case.checks.recorded] == [*deviations, None, None]
    assert [check.at for check in case.checks.recorded[:3]] == [
        round(record.at, 3) for record in (second, first, second)
    ]


HELD = {"metadata": {"annotations": {"conformance.grove.io/hold-ready": "yes"}}}


def test_an_ability_that_the_cluster_lacks_blocks_the_scene_before_anything_is_sent(story: Story) -> None:
    case = play(story, unplayed={"pod behaviors": "a held pod is Ready"})
    held_object = {"apiVersion": "v1", "kind": "ConfigMap", **HELD}
    attempts: list[Callable[[], object]] = [
        lambda: case.create(held_object),
        lambda: case.create_all([held_object]),
        lambda: case.patch("pods", "a", HELD),
    ]
    for attempt in attempts:
        with pytest.raises(Blocked, match=r"the cluster does not play pod behaviors: a held pod is Ready") as caught:
            attempt()
        assert caught.value.cause == "circumstances"
    assert case.acts == []


def test_objects_that_the_cluster_can_simulate_are_sent(story: Story) -> None:
    for unplayed in ({}, {"node failures": "a lost node stays Ready"}):
        case = play(story, unplayed=unplayed)
        story.pod("a", revision=200)
        case.patch("pods", "a", HELD)
        assert len(case.acts) == 1
