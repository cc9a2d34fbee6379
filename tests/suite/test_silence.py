"""Tests that a wait ends early if the implementation has nothing left to do, and never before that."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from conformance.cluster import users
from conformance.cluster.audit import AuditedRequest, AuditLog, AuditTail
from conformance.cluster.settings import LoggedReads, audit_policy
from conformance.history.query import Unmet
from conformance.report.causes import nearest_miss
from conformance.suite.outcomes.checks import CheckFailed
from conformance.suite.scenes.case import Case
from conformance.suite.scenes.silence import Silence, delay
from conformance.suite.scenes.waits import SILENCE_MESSAGE
from tests.history.scripted import Scripted
from tests.history.story import SPACE, Story
from tests.suite.test_case import play

REQUEST = AuditedRequest("mine", 200, "get", SPACE, user="operator")
REFUSED = AuditedRequest("mine", 403, "create", SPACE)


class Requests:
    """The requests of the implementation, at the given times."""

    def __init__(self, story: Story, *moments: float, request: AuditedRequest = REQUEST) -> None:
        self._log, self._moments, self._request = story.log, list(moments), request

    def poll(self) -> list[AuditedRequest]:
        due = [moment for moment in self._moments if moment <= self._log.now()]
        self._moments = self._moments[len(due) :]
        return [self._request._replace(at=moment) for moment in due]


class SuccessfulDriver:
    """A driver whose calls all succeed."""

    descriptor = SimpleNamespace(roles=frozenset())
    failures, failures_at_start, logs = tuple, 0, dict

    @property
    def operators(self) -> SuccessfulDriver:
        return self

    def __getattr__(self, name: str) -> Callable[..., bool]:
        return lambda *given: True


def silence(story: Story, requests: Requests) -> Silence:
    return Silence(requests.poll, SPACE, story.log.now)


@pytest.fixture
def story() -> Story:
    story = Story(Scripted())
    story.pod("a1", after=0)
    return story


def seconds_waited(story: Story, requests: Requests, *, limit: float = 60, real: bool = False) -> float:
    """Return how many seconds a wait without success lasts, of at most `limit`."""
    case = play(story, silence=silence(story, requests))
    with pytest.raises(CheckFailed):
        case.until("AA-001", "something else", lambda view: Unmet("not yet"), limit, real=real)
    return story.log.now()


def test_the_wait_for_an_idle_implementation_is_halved(story: Story) -> None:
    assert seconds_waited(story, Requests(story)) == pytest.approx(30, abs=2)


def test_the_wait_for_an_active_implementation_lasts_in_full(story: Story) -> None:
    assert seconds_waited(story, Requests(story, 20, 40)) >= 60


def test_the_cause_of_a_failure_is_what_was_missing_and_not_the_silence(story: Story) -> None:
    story.record("podcliques", "c", {}, after=0)  # a sign of life
    case = play(story, silence=silence(story, Requests(story)))
    with pytest.raises(CheckFailed):
        case.until("AA-001", "something else", lambda view: Unmet("not yet"))
    observed = case.checks.recorded[-1].seen
    assert (nearest_miss(observed), SILENCE_MESSAGE in observed) == ("not yet", True)


def test_a_wait_that_ends_at_once_reports_the_idle_time(story: Story) -> None:
    story.record("podcliques", "c", {}, after=0)
    case = play(story, silence=silence(story, Requests(story)))
    case.settled("something else", lambda view: None)  # ends when nothing more is expected
    assert story.log.now() == pytest.approx(30, abs=2)
    with pytest.raises(CheckFailed):
        case.until("AA-001", "a third thing", lambda view: Unmet("not yet"))
    lines = str(case.checks.recorded[-1].seen).splitlines()
    assert lines[0] == f"not seen within {story.log.now():.0f} s: a third thing"
    assert lines[-1] == f"{SILENCE_MESSAGE} {story.log.now():.0f} s"


def test_a_wait_that_ends_while_an_operator_polls_reports_that_no_request_was_new(story: Story) -> None:
    story.record("podcliques", "c", {}, after=0)
    case = play(story, silence=silence(story, Requests(story, *range(0, 60, 2))))
    with pytest.raises(CheckFailed):
        case.until("AA-001", "something else", lambda view: Unmet("not yet"))
    assert "no new request" in str(case.checks.recorded[-1].seen).splitlines()[-1]


def test_a_wait_that_was_prolonged_reports_its_duration(story: Story) -> None:
    case = play(story)
    with pytest.raises(CheckFailed):
        case.until("AA-001", "a pod", lambda view: Unmet("not yet"), 5)  # the implementation has done nothing so far
    story.log.later(story.log.now() + 2, lambda: (story.keep_pace(), story.record("podcliques", "c", {}, after=0)))
    start = story.log.now()
    with pytest.raises(CheckFailed):
        case.until("AA-001", "a clique", lambda view: Unmet("not yet"), 30)
    duration = story.log.now() - start
    assert duration == pytest.approx(30, abs=2)
    assert str(case.checks.recorded[-1].seen).startswith(f"not seen within {duration:.0f} s")


@pytest.mark.parametrize(
    "user", ["kwok-admin", "system:serviceaccount:kube-system:node-controller", "grove-conformance"]
)
def test_other_users_do_not_count(story: Story, user: str) -> None:
    requests = Requests(story, 20, 40, request=REQUEST._replace(user=user))
    assert seconds_waited(story, requests) == pytest.approx(30, abs=2)


@pytest.mark.parametrize("program", ["kube-controller-manager", "grove-conformance"])
def test_an_implementation_counts_whatever_it_calls_itself(story: Story, program: str) -> None:
    assert seconds_waited(story, Requests(story, 20, 40, request=REQUEST._replace(program=program))) >= 60


def test_a_refused_write_may_be_repeated_after_a_back_off(story: Story) -> None:
    # Each delay is twice the previous one: a client that was rejected for 15 s tries again 16 s later.
    assert seconds_waited(story, Requests(story, 0, 1, 3, 7, 15, request=REFUSED)) >= 60
    second = Story(Scripted())
    second.pod("a1", after=0)
    conflict = AuditedRequest("mine", 409, "update", SPACE)
    assert seconds_waited(second, Requests(second, 0, 1, 3, 7, 15, request=conflict)) == pytest.approx(45, abs=2)


def test_the_wait_for_an_implementation_that_gives_up_is_halved(story: Story) -> None:
    assert seconds_waited(story, Requests(story, 1, 2, request=REFUSED)) == pytest.approx(32, abs=2)


def test_the_end_of_a_back_off_is_derived_from_rejections_between_two_waits(story: Story) -> None:
    requests = Requests(story, 0, 2, 6, 14, request=REFUSED)
    story.log.later(15, story.keep_pace)
    case = play(story, silence=silence(story, requests))
    case.quiet(16, real=True)
    with pytest.raises(CheckFailed):
        case.until("AA-001", "something else", lambda view: Unmet("not yet"))
    assert story.log.now() == pytest.approx(16 + 56, abs=2)


def test_refusals_in_the_namespace_of_an_earlier_test_do_not_count(story: Story) -> None:
    requests = Requests(story, 0, 15, request=AuditedRequest("mine", 403, "create", "an-earlier-test"))
    assert seconds_waited(story, requests) == pytest.approx(45, abs=2)


def test_a_changing_state_is_waited_for(story: Story) -> None:
    def bind_pod() -> None:
        story.keep_pace()
        story.pod("b1", after=0)

    story.log.later(25, bind_pod)
    assert seconds_waited(story, Requests(story)) == pytest.approx(55, abs=2)


ERROR = "waiting for the PodGangs of replica 0 to become Ready"


def rewrite_status(story: Story, every: float, *errors: str, until: float = 150) -> None:
    """Let the implementation write the status of a set again and again, with the time and these errors in turn."""
    for number in range(int(until / every)):
        time = f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"
        reported = {"status": {"lastErrors": [{"description": errors[number % len(errors)], "observedAt": time}]}}

        def write(reported: dict[str, object] = reported) -> None:
            story.keep_pace()
            story.record("podcliquesets", "s", reported, after=0)

        story.log.later(number * every, write)


@pytest.mark.parametrize(
    ("every", "errors", "lasts"),
    [
        pytest.param(5, (ERROR,), 75, id="the same error"),
        pytest.param(2, ("", ERROR), 58, id="no error and the error in turn"),
        pytest.param(0.5, (ERROR,), 35, id="the same error twice a second"),
    ],
)
def test_a_status_that_is_rewritten_unchanged_is_not_waited_for(
    every: float, errors: tuple[str, ...], lasts: float
) -> None:
    story = Story(Scripted())
    rewrite_status(story, every, *errors)
    moments = [number * every for number in range(int(150 / every))]
    assert seconds_waited(story, Requests(story, *moments), limit=150) == pytest.approx(lasts, abs=3)


def test_a_status_that_counts_is_waited_for(story: Story) -> None:
    rewrite_status(story, 5, *(f"{number} of 30 pods are updated" for number in range(30)))
    assert seconds_waited(story, Requests(story), limit=150) >= 150


def test_requests_that_change_nothing_are_not_waited_for_when_they_are_repeated(story: Story) -> None:
    assert seconds_waited(story, Requests(story, *range(0, 150, 5)), limit=150) == pytest.approx(20 + 30, abs=2)
    second = Story(Scripted())
    refused = Requests(second, *range(0, 150, 5), request=REFUSED)
    assert seconds_waited(second, refused, limit=150) == pytest.approx(20 + 80, abs=3)


def test_repeated_requests_count_again_after_something_has_changed(story: Story) -> None:
    story.log.later(40, lambda: (story.keep_pace(), story.pod("b1", after=0)))
    assert seconds_waited(story, Requests(story, *range(0, 150, 5)), limit=150) == pytest.approx(40 + 20 + 30, abs=5)


def test_a_long_back_off_is_waited_for(story: Story) -> None:
    # The next attempt would come 32 s after the last one.
    assert seconds_waited(story, Requests(story, 0, 1, 3, 7, 15, 31, request=REFUSED), limit=150) > 31 + 32 + 16


def test_slow_changes_are_waited_for(story: Story) -> None:
    for number in range(1, 6):
        story.log.later(28 * number, lambda n=number: (story.keep_pace(), story.pod(f"b{n}", after=0)))  # type: ignore[misc]
    assert seconds_waited(story, Requests(story, *range(0, 150, 5)), limit=150) >= 150


def test_a_failed_creation_of_an_existing_object_may_be_repeated_after_a_back_off(story: Story) -> None:
    def lasted(verb: str) -> float:
        story = Story(Scripted())
        story.pod("a1", after=0)
        return seconds_waited(story, Requests(story, 0, 1, 3, 7, 15, request=AuditedRequest("mine", 409, verb, SPACE)))

    assert lasted("create") >= 60
    assert lasted("update") == pytest.approx(45, abs=2)


ACTS: dict[str, Callable[[Case], object]] = {
    "a patch of a node": lambda case: case.patch("nodes", "n1", {}),
    "a patch of what is not recorded": lambda case: case.patch("resourceclaimtemplates", "t", {}),
    "a deletion": lambda case: case.delete("nodes", "n1"),
    "an eviction": lambda case: case.evict("a1"),
    "new nodes": lambda case: case.create_nodes([]),
    "the death of a process": lambda case: case.roles.kill("operator"),
    "a pause": lambda case: case.roles.pause("operator"),
    "a restart": lambda case: case.roles.restart("operator"),
    "a second operator": lambda case: case.roles.start_second_operator(),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_the_implementation_has_its_time_after_each_act_of_the_test(
    story: Story, act: Callable[[Case], object]
) -> None:
    story.record("podcliques", "c", {}, after=0)  # a sign of life
    case = play(story, driver=SuccessfulDriver(), silence=silence(story, Requests(story)))
    case.settled("nothing", lambda view: False, 50)
    start = story.log.now()
    act(case)
    with pytest.raises(CheckFailed):
        case.until("AA-001", "something else", lambda view: Unmet("not yet"))
    assert story.log.now() - start == pytest.approx(30, abs=2)


def test_the_wait_for_real_components_lasts_in_full(story: Story) -> None:
    assert seconds_waited(story, Requests(story), real=True) >= 60


@pytest.mark.parametrize(("termination_delay", "added"), [("10s", 10), ("4h0m0s", 0), ("never", 0)])
def test_a_delay_of_the_contract_is_added(story: Story, termination_delay: str, added: float) -> None:
    story.record("podcliquesets", "s", {"spec": {"template": {"terminationDelay": termination_delay}}}, after=0)
    assert delay(story.history.view(), 60) == added
    assert seconds_waited(story, Requests(story)) == pytest.approx(30 + added, abs=2)


def test_a_lease_runs_out_before_another_operator_acts(story: Story) -> None:
    story.record("leases", "grove-operator-leader-election", {"spec": {"leaseDurationSeconds": 25}}, after=0)
    assert seconds_waited(story, Requests(story)) == pytest.approx(55, abs=2)


def test_a_log_is_read_on_by_whole_lines(tmp_path: Path) -> None:
    def line(agent: str, code: int, second: int, verb: str = "list") -> str:
        event = {"stage": "ResponseComplete", "verb": verb, "userAgent": agent, "responseStatus": {"code": code}}
        place = {"objectRef": {"namespace": "a"}, "stageTimestamp": f"1970-01-01T00:00:{second:02}.500000Z"}
        return json.dumps({**event, **place}) + "\n"

    path = tmp_path / "audit.log"
    path.write_text(line("old/1", 200, 1))
    tail = AuditTail(AuditLog(path))
    assert tail.poll() == []
    second = line("you/2", 403, 3)
    with path.open("a") as log:
        log.write(line("mine/1", 200, 2) + line("mine/1", 200, 3, "watch") + second[:9])
    assert tail.poll() == [AuditedRequest("mine", 200, "list", "a", 2.5)]
    with path.open("a") as log:
        log.write(second[9:])
    assert tail.poll() == [AuditedRequest("you", 403, "list", "a", 3.5)]
    assert AuditTail(AuditLog(tmp_path / "none")).poll() == []

    with path.open("a") as log:
        log.write(line("half/1", 200, 4)[:30])
    tail_of_partial_line = AuditTail(AuditLog(path))
    assert tail_of_partial_line.poll() == []
    with path.open("a") as log:
        log.write(line("half/1", 200, 4)[30:40])
    assert tail_of_partial_line.poll() == []
    with path.open("a") as log:
        log.write(line("half/1", 200, 4)[40:] + line("whole/1", 200, 5))
    assert tail_of_partial_line.poll() == [AuditedRequest("whole", 200, "list", "a", 5.5)]


def is_logged(reads: LoggedReads, user: str, *groups: str) -> bool:
    """Return whether a list of pods by a user is logged; the first matching rule decides."""
    for rule in audit_policy(reads)["rules"]:
        matches = "nonResourceURLs" not in rule and "resources" not in rule and "list" in rule.get("verbs", ("list",))
        matches = matches and ("users" not in rule or user in rule["users"])
        if matches and ("userGroups" not in rule or set(groups) & set(rule["userGroups"])):
            return str(rule["level"]) != "None"
    return True


@pytest.mark.parametrize("user", ["operator", "gang-scheduler", "system:serviceaccount:grove:operator"])
def test_reads_of_implementations_are_logged_where_they_are_wanted(user: str) -> None:
    assert [is_logged(reads, user, "system:authenticated") for reads in LoggedReads] == [False, True, True]


@pytest.mark.parametrize(
    "user", [users.SUITE, "kwok-admin", "system:apiserver", "system:serviceaccount:kube-system:gc"]
)
def test_reads_of_the_suite_and_of_components_are_logged_only_with_all_reads(user: str) -> None:
    groups = ["system:serviceaccounts:kube-system"] if "kube-system" in user else ["system:masters"]
    assert [is_logged(reads, user, *groups) for reads in LoggedReads] == [False, False, True]
    assert user == users.SUITE or users.is_component(user)
