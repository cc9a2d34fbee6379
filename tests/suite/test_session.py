"""Tests of the parts of the real environment that need no cluster."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.cluster import users
from conformance.cluster.audit import Writer
from conformance.cluster.outages import Watcher
from conformance.errors import ClusterTooSlow, HarnessError, SupervisorLost
from conformance.implementation.descriptor import Role
from conformance.implementation.driver import NotStarted
from conformance.implementation.process import ProcessExit
from conformance.implementation.role_process import ProcessFailure
from conformance.suite.environment import GivenUp, folder_name, randomness, short_name
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.registry import requirement
from conformance.suite.session.removed_webhooks import removed
from conformance.suite.session.worker import ClusterEnvironment
from conformance.suite.settings import RunSettings
from kube.errors import ApiError

LONG = "gang/test_gangs.py::test_a_gang_that_does_not_fit_binds_nothing_and_binds_whole_once_nodes_appear"


def test_names_are_short_unique_labels() -> None:
    name = short_name(LONG, "r1")
    assert len(name) <= 30 and name == name.lower() and name.replace("-", "").isalnum()
    assert name != short_name(LONG, "r2") and name != short_name(LONG + "[1]", "r1")


def test_folders_of_evidence_have_the_same_name_in_every_run() -> None:
    assert folder_name("core/test_a.py::test_b[x/../y]") == "core-test-a-test-b-x-y"
    assert len(folder_name(LONG * 2)) <= 80 and folder_name(LONG * 2) != folder_name(LONG * 3)


def test_randomness_depends_on_test_and_seed_only() -> None:
    assert randomness("t", 1).random() == randomness("t", 1).random()
    assert randomness("t", 1).random() != randomness("u", 1).random() != randomness("u", 2).random()


class Refusing:
    """An API server that answers each request with the same error."""

    def __init__(self, *error: Any) -> None:
        self.error = ApiError(*error, {}, None)

    def create(self, obj: object) -> list[str]:
        raise self.error

    names = create


DENIED_MESSAGE = """namespaces "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: false"""
HUNG_MESSAGE = 'failed calling webhook "h.example": failed to call webhook: Post "https://x": context deadline exceeded'


@pytest.mark.parametrize(
    ("message", "blamed"),
    [
        (DENIED_MESSAGE, True),
        (f"Internal error occurred: {HUNG_MESSAGE}", True),
        ('admission webhook "h.example" denied the request: no', True),
        ('admission plugin "MutatingWebhook" failed to complete mutation in 13s', True),
        ("conversion webhook for grove.io/v1alpha1, Kind=PodGang failed: Post", True),
        ("etcdserver: request timed out", False),
        ('namespaces "x" already exists', False),
    ],
)
def test_an_implementation_whose_webhooks_prevent_namespaces_is_blamed(message: str, blamed: bool) -> None:
    environment = object.__new__(ClusterEnvironment)
    environment._refusal, environment._namespace_failures = None, 0
    with pytest.raises(Blocked if blamed else HarnessError, match="the namespace n cannot be made: ") as raised:
        environment._create_namespace(Refusing(500, "InternalError", message), "n")  # type: ignore[arg-type]
    if isinstance(raised.value, Blocked):
        assert raised.value.cause == "implementation"
        with pytest.raises(Blocked, match="the namespace n cannot be made: "):  # later tests do not wait
            environment._restart_processes()
    else:
        assert environment._refusal is None


def test_a_failed_creation_of_a_namespace_is_not_repeated_in_every_test() -> None:
    environment = object.__new__(ClusterEnvironment)
    environment._refusal, environment._namespace_failures = None, 0
    silent: Any = Refusing(504, "Timeout", "Timeout: request did not complete within requested timeout")
    for expected in (HarnessError, HarnessError, GivenUp):
        with pytest.raises(expected):
            environment._create_namespace(silent, "n")
    with pytest.raises(GivenUp, match="given up: the namespace n cannot be made: the API server answered 504 Timeout"):
        environment._restart_processes()


def test_nothing_is_judged_after_the_operator_could_not_be_restored() -> None:
    """A failure stays proven despite harness errors, so the harness must not cause failures."""

    def reset() -> None:
        raise HarnessError("the API server failed while webhooks were installed")

    environment = object.__new__(ClusterEnvironment)
    environment._refusal = None
    environment.driver = SimpleNamespace(operators=SimpleNamespace(reset=reset))  # type: ignore[assignment]
    for step in (environment._restore, environment._restart_processes):
        with pytest.raises(GivenUp, match="given up: the operator cannot be restored: the API server failed"):
            step()


SLOW_ERROR = ClusterTooSlow("CRDs are not established after 31 s: x: no condition yet")
NOT_READY_ERROR = NotStarted(Role.OPERATOR, "", "mine", "is not ready after 20 s: … did not answer 200", timed_out=True)
UNSUPERVISED_ERROR = SupervisorLost("mine: the operator was ended because the suite's own process … was killed")
DEAD_ERROR = NotStarted(Role.OPERATOR, "", "mine", "exited with code 3 before it was ready")


@pytest.mark.parametrize(
    ("error", "raised", "words"),
    [
        (SLOW_ERROR, GivenUp, "given up: CRDs are not established"),
        (UNSUPERVISED_ERROR, GivenUp, "given up: mine: the operator was ended because the suite's own process"),
        (
            NOT_READY_ERROR,
            GivenUp,
            "given up, since nothing can be judged: .* — if it needs longer, say so in its descriptor",
        ),
        (DEAD_ERROR, Blocked, "mine cannot be started: .*exited with code 3"),
    ],
)
def test_a_late_start_ends_the_run_without_a_verdict(error: HarnessError, raised: type[Exception], words: str) -> None:
    """Later tests do not wait again."""

    def start() -> None:
        raise error

    environment = object.__new__(ClusterEnvironment)
    environment._refusal = environment._channel = environment._broken_outage = None
    environment._settings = RunSettings(run="r", directory="", implementation="x")
    environment._watcher = Watcher([])
    judged = SimpleNamespace(name="mine", roles=frozenset({Role.OPERATOR}))
    driver = SimpleNamespace(descriptor=judged, start=start, logs=dict, failures=tuple)
    environment.driver = driver  # type: ignore[assignment]
    with pytest.raises(raised, match=words):
        environment._restart_processes()
    driver.start = lambda: None
    if raised is GivenUp:
        with pytest.raises(GivenUp, match=words):
            environment._restart_processes()
    else:
        environment._restart_processes()


@pytest.mark.parametrize(("user", "by"), [("mallory", " by the user mallory"), (users.SUITE, "")])
def test_removed_webhooks_are_named_with_the_user_who_removed_them(user: str, by: str) -> None:
    api: Any = SimpleNamespace(names=lambda plural: ["kept"] if plural == "validatingwebhookconfigurations" else [])
    audit: Any = SimpleNamespace(writers=lambda *about: [Writer(user, "hostile/1.0")])
    installed = [("ValidatingWebhookConfiguration", "kept"), ("ValidatingWebhookConfiguration", "gone")]
    assert removed(api, installed[:1], audit) == ""
    assert removed(api, installed, audit) == f"the ValidatingWebhookConfiguration gone was removed{by}"
    assert removed(Refusing(500, "", ""), installed, None) == ""  # type: ignore[arg-type]


def test_a_failure_is_reproduced_by_its_test() -> None:
    environment = object.__new__(ClusterEnvironment)
    environment._settings = RunSettings(run="r", directory="", implementation="x", reproduce="grove-conformance run")
    environment._registry = requirement.load()
    lines = environment._reproduce([LONG, f"{LONG}[a b]"], ["CORE-001", "INV-004", "CORE-001"])
    assert lines[:2] == ["# Runs these tests again:", f"grove-conformance run --test {LONG} --test '{LONG}[a b]'"]
    assert [line for line in lines if line.startswith("# CORE-001 by hand: ")] == [lines[3]]
    assert lines[4].startswith("kubectl ") and "--id" not in "".join(lines)
    assert environment._reproduce([LONG], [])[0] == "# Runs this test again:"


def test_an_implementation_that_keeps_the_environment_from_opening_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(environment: ClusterEnvironment) -> None:
        environment._mutators = lambda: "the APIService x answers"
        raise HarnessError("the recorder could not list podgangs")

    monkeypatch.setattr(ClusterEnvironment, "_open", opened)
    with pytest.raises(Blocked, match="the APIService x answers, and then: the recorder could not list") as blocked:
        ClusterEnvironment(RunSettings(run="r", directory="/", implementation="x"), "gw0", SimpleNamespace())  # type: ignore[arg-type]
    assert blocked.value.cause == "implementation"


def test_the_log_of_a_process_that_was_killed_outlives_its_cluster(tmp_path: Path) -> None:
    log = tmp_path / "cluster" / "operator.log"
    log.parent.mkdir()
    log.write_text("began\n")
    failure = ProcessFailure(Role.OPERATOR, "", "mine", ProcessExit(-9, 5.0), f"it says nothing (all of it: {log})")
    environment = object.__new__(ClusterEnvironment)
    environment._settings = RunSettings(run="r", directory=str(tmp_path / "run"), implementation="x")
    environment._watcher = SimpleNamespace(settled=lambda start: [])  # type: ignore[assignment]
    driver = SimpleNamespace(failures=lambda: (failure,), logs=lambda: {"operator": log})
    environment.driver = driver  # type: ignore[assignment]
    with pytest.raises(HarnessError, match=r"ended by SIGKILL; .* logs/operator.log beside the report") as error:
        environment._require_healthy(3.0, True)
    assert str(tmp_path) not in str(error.value)
    assert (tmp_path / "run" / "logs" / "operator.log").read_text() == "began\n"
