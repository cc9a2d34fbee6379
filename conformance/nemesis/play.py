"""Runs one scenario, with or without a fault, and records the end of each step."""

from __future__ import annotations

import contextlib
import copy
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from conformance import invariants
from conformance.grove import health, pods
from conformance.grove.fields import name
from conformance.history.query import History, WaitTimeout
from conformance.nemesis import normal_form
from conformance.nemesis.bed import FaultTestbed
from conformance.nemesis.faults import TWO_LEADERS, FaultInjector
from conformance.nemesis.points import FaultPlan, FaultPoint
from conformance.nemesis.rest import (
    DELETION_SECONDS,
    FAULTLESS_REST_SECONDS,
    Abandoned,
    NotAtRest,
    changing_resources,
    delete_set,
    wait_for_faultless_rest,
    waiting_objects,
)
from conformance.nemesis.scenario import FaultScenario, ScenarioStep
from conformance.nemesis.watching import PointWatcher
from kube.errors import ApiError

FINAL_REST_SECONDS = 25.0
"""Seconds without a change after which a state that differs is considered final: longer than the back-off after a few
errors."""
STUCK_SECONDS = 90.0
"""Seconds after which a step with a fault counts as stuck if it does not come to rest."""
WEBHOOK_SECONDS = 30.0
"""Seconds within which an operator that is ready must respond to webhook calls."""


class FaultVerdict(StrEnum):
    """The verdict on the end of a plan."""

    SAME = "same"
    NOT_STRUCK = "not struck"
    DIFFERENT = "different"
    STUCK = "stuck"
    LEFT_BEHIND = "left behind"


BROKEN = frozenset({FaultVerdict.DIFFERENT, FaultVerdict.STUCK, FaultVerdict.LEFT_BEHIND})
"""Verdicts of plans whose fault had a lasting effect."""


@dataclass(frozen=True)
class Rest:
    """The end of a step. `taken_down` is the number of pods that were Ready and are gone, `seconds` is the time since
    the step's action, and `broken` holds the violated invariants. `writing` says whether the implementation is still
    writing although nothing changes."""

    form: normal_form.Form
    seconds: float
    taken_down: int
    broken: frozenset[str]
    writing: bool = False


@dataclass(frozen=True)
class FaultlessRuns:
    """The ends of each step of a scenario without a fault, in each of several `runs` (a run maps a step to its end).
    `rests` has what all runs have in common: values that differ between runs are `masked`."""

    runs: Sequence[Mapping[str, Rest]]
    points: Sequence[FaultPoint]
    history: History
    rests: Mapping[str, Rest] = field(init=False)
    masked: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        steps = list(self.runs[-1])
        masked = frozenset[str]().union(
            *(normal_form.varying_paths(run[step].form for run in self.runs) for step in steps)
        )
        object.__setattr__(self, "masked", masked)
        object.__setattr__(
            self, "rests", {step: _common_rest([run[step] for run in self.runs], masked) for step in steps}
        )

    def has_same_results(self, other: FaultlessRuns) -> bool:
        """Return whether both have the same masked values and the same ends."""

        def facts_of(rest: Rest) -> tuple[object, ...]:
            return rest.form, rest.taken_down, rest.broken, rest.writing

        return self.masked == other.masked and all(
            facts_of(rest) == facts_of(other.rests[step]) for step, rest in self.rests.items()
        )


def _common_rest(rests: Sequence[Rest], masked: frozenset[str]) -> Rest:
    return Rest(
        normal_form.without_paths(rests[-1].form, masked),
        max(rest.seconds for rest in rests),
        max(rest.taken_down for rest in rests),
        frozenset().union(*(rest.broken for rest in rests)),
        any(rest.writing for rest in rests),
    )


@dataclass(frozen=True)
class FaultOutcome:
    """The result of a plan. `lines` say what differs, and `place` in which step. `way` is true if the end is the same,
    and only what happened before it differs."""

    plan: FaultPlan
    verdict: FaultVerdict
    seconds: float
    place: str = ""
    lines: tuple[str, ...] = ()
    way: bool = False
    history: History | None = None
    """The history of a plan whose verdict is one of BROKEN."""


_numbers = itertools.count(1)


def learn(bed: FaultTestbed, scenario: FaultScenario, runs: int = 2) -> FaultlessRuns:
    """Run a scenario several times without a fault. Raises NotAtRest if a step does not come to rest."""
    runs_without_fault = [_run_without_fault(bed, scenario) for _ in range(runs)]
    _, points, history = runs_without_fault[-1]
    return FaultlessRuns([rests for rests, *_ in runs_without_fault], points, history)


def learn_more(bed: FaultTestbed, scenario: FaultScenario, faultless_runs: FaultlessRuns, runs: int) -> FaultlessRuns:
    """Run a scenario `runs` more times without a fault. Raises NotAtRest if a step does not come to rest."""
    return replace(
        faultless_runs, runs=[*faultless_runs.runs, *(_run_without_fault(bed, scenario)[0] for _ in range(runs))]
    )


@contextlib.contextmanager
def _prepare_run(
    bed: FaultTestbed, scenario: FaultScenario, namespace: str, plan: FaultPlan | None = None
) -> Iterator[History]:
    """Provide the operators that a scenario and a plan need, and a namespace."""
    with contextlib.ExitStack() as stack:
        if scenario.starts_with_earlier_version:
            stack.enter_context(bed.earlier_operator())
        if plan is not None and plan.fault == TWO_LEADERS:
            stack.enter_context(bed.two_candidates())
        yield stack.enter_context(bed.namespace(namespace))


def _run_without_fault(bed: FaultTestbed, scenario: FaultScenario) -> tuple[dict[str, Rest], list[FaultPoint], History]:
    namespace = f"nemesis-{next(_numbers)}"
    rests: dict[str, Rest] = {}
    points: list[FaultPoint] = []
    with _prepare_run(bed, scenario, namespace) as history:
        for step in scenario.steps:
            watcher = PointWatcher(step.name, namespace)
            bed.set_interference(watcher)
            start, mark = time.monotonic(), history.mark()
            _act(bed, scenario, step, history)
            rest = max(step.rest, FAULTLESS_REST_SECONDS)
            try:
                wait_for_faultless_rest(history, rest, "" if step.act == "delete" else scenario.set_name)
            except WaitTimeout as error:
                raise NotAtRest(f"{scenario.name}, step {step.name}: {error}") from None
            seconds = time.monotonic() - start - rest
            still_writes = watcher.writes_within(step.rest) > 0
            form = normal_form.normal_form(history.view(), namespace)
            rests[step.name] = Rest(
                form, seconds, _taken_down(history, mark), _violated_invariants(bed, history), still_writes
            )
            if not step.quiet:
                points += watcher.points
        if leftovers := delete_set(bed, history, scenario.set_name):
            raise NotAtRest(f"{scenario.name}: after the set was deleted, there is still {', '.join(leftovers)}")
        return rests, points, history.frozen()


def play(bed: FaultTestbed, scenario: FaultScenario, faultless_runs: FaultlessRuns, plan: FaultPlan) -> FaultOutcome:
    """Run a plan. Raises Abandoned if the result is no longer needed."""
    namespace, start = f"nemesis-{next(_numbers)}", time.monotonic()
    verdict, place, lines = FaultVerdict.SAME, "", list[str]()
    differs_before_end = False
    injector: FaultInjector | None = None
    with _prepare_run(bed, scenario, namespace, plan) as history:
        past_version = bed.revision()
        for step in scenario.steps:
            watcher = PointWatcher(step.name, namespace)
            if step.name == plan.point.step:
                watcher = injector = FaultInjector(step.name, namespace, plan, bed, past_version)
            bed.set_interference(watcher)
            mark = history.mark()
            try:
                _act(bed, scenario, step, history)
            except NotAtRest as error:
                verdict, place, lines = FaultVerdict.STUCK, step.name, [str(error)]
                break
            past_version = bed.revision()
            verdict, lines = _wait_for_end(
                bed, history, step, faultless_runs.rests[step.name], faultless_runs.masked, watcher
            )
            if verdict is FaultVerdict.SAME:
                verdict, lines = _compare_course(bed, history, faultless_runs.rests[step.name], mark)
                differs_before_end = verdict is not FaultVerdict.SAME
            if verdict is not FaultVerdict.SAME or (injector is not None and not injector.has_struck):
                place = step.name
                break
        leftovers = delete_set(bed, history, scenario.set_name)
        if injector is not None and injector.is_busy:
            injector.finished.wait(STUCK_SECONDS)  # the next plan needs the role
        if leftovers and verdict is FaultVerdict.SAME:
            verdict, place = FaultVerdict.LEFT_BEHIND, "the deletion of the set"
            lines = [f"still there after {DELETION_SECONDS:g} s: {leftover}" for leftover in leftovers]
        if injector is None or not injector.has_struck:
            verdict = FaultVerdict.NOT_STRUCK  # the fault does not explain any difference
        recorded_history = history.frozen() if verdict in BROKEN else None
    return FaultOutcome(
        plan, verdict, time.monotonic() - start, place, tuple(lines), differs_before_end, recorded_history
    )


def _wait_for_end(
    bed: FaultTestbed, history: History, step: ScenarioStep, rest: Rest, masked: frozenset[str], watcher: PointWatcher
) -> tuple[FaultVerdict, list[str]]:
    """Wait for the end of a step, and compare it with the end without the fault. Raises Abandoned if the result is no
    longer needed."""
    deadline, calm_start = time.monotonic() + STUCK_SECONDS, time.monotonic()
    while True:
        if bed.abandoned.is_set():
            raise Abandoned
        mark = history.mark()
        with contextlib.suppress(WaitTimeout):
            mark = history.quiet(step.rest, step.rest * 2, resources=changing_resources(history))
        current_time, still_writes = time.monotonic(), watcher.writes_within(step.rest) > 0
        if history.mark() != mark or (still_writes and not rest.writing) or watcher.is_busy:
            calm_start = current_time
        has_been_calm = current_time - calm_start >= FINAL_REST_SECONDS
        form = normal_form.without_paths(normal_form.normal_form(history.view(), history.namespace), masked)
        is_at_rest = history.idle_seconds >= step.rest and (not still_writes or rest.writing) and not watcher.is_busy
        if form == rest.form and is_at_rest:
            return FaultVerdict.SAME, []
        if has_been_calm:
            return FaultVerdict.DIFFERENT, normal_form.difference(rest.form, form)
        if current_time > deadline:
            lines = [f"{watcher.writes_within(step.rest)} writes in the last {step.rest:g} s"]
            return FaultVerdict.STUCK, lines + waiting_objects(history.view()) + normal_form.difference(rest.form, form)


def _compare_course(bed: FaultTestbed, history: History, rest: Rest, mark: int) -> tuple[FaultVerdict, list[str]]:
    """Compare what happened before an end that is the same."""
    lines = []
    if (taken_down := _taken_down(history, mark)) > rest.taken_down:
        lines.append(f"{taken_down} pods that had been Ready are gone; without the fault, {rest.taken_down}")
    lines += [
        f"{invariant} is broken, and holds without the fault"
        for invariant in sorted(_violated_invariants(bed, history) - rest.broken)
    ]
    return (FaultVerdict.DIFFERENT if lines else FaultVerdict.SAME), lines


def _violated_invariants(bed: FaultTestbed, history: History) -> frozenset[str]:
    judgements = invariants.judge(history, settle=bed.descriptor.settle)
    return frozenset(f"{judgement.id}, {judgement.statement}" for judgement in judgements if judgement.holds is False)


def _act(bed: FaultTestbed, scenario: FaultScenario, step: ScenarioStep, history: History) -> None:
    """Perform the act of a step. Repeat it while a webhook does not respond, as users would: an operator may be ready
    slightly before its webhooks are served. Raises NotAtRest if the API server rejects the request."""
    attempts = Retrying(
        retry=retry_if_exception(_webhook_failed),
        wait=wait_fixed(0.2),
        stop=stop_after_delay(WEBHOOK_SECONDS),
        reraise=True,
    )
    try:
        attempts(_perform, bed, scenario, step, history)
    except ApiError as error:
        raise NotAtRest(f"{scenario.name}, step {step.name}: refused: {error}") from None


def _webhook_failed(error: BaseException) -> bool:
    return isinstance(error, ApiError) and "failed calling webhook" in error.message


def _perform(bed: FaultTestbed, scenario: FaultScenario, step: ScenarioStep, history: History) -> None:
    namespace = history.namespace
    history.record_action()
    match step.act:
        case "create":
            bed.api.create(bed.manifest(scenario.manifest, namespace))
        case "delete":
            bed.api.delete("podcliquesets", namespace, [scenario.set_name])
        case "patch":
            for patch in step.patch or ():
                bed.api.patch(patch.resource, namespace, patch.name, patch.body, patch.subresource)
        case "image":
            body = _with_images(bed, scenario, history, step.image or {})
            bed.api.patch("podcliquesets", namespace, scenario.set_name, body)
        case "upgrade":
            bed.upgrade()
        case "crash":
            for pod in history.view().list("pods"):
                if name(pod).startswith(f"{step.crash}-"):
                    hold = {"metadata": {"annotations": {health.HOLD_STATUS: "yes"}}}
                    bed.api.patch("pods", namespace, name(pod), hold)
                    bed.api.patch("pods", namespace, name(pod), health.status(pod, health.CRASHED), "status")


def _with_images(
    bed: FaultTestbed, scenario: FaultScenario, history: History, images: Mapping[str, str]
) -> dict[str, object]:
    """Return a merge patch with the complete stored list of cliques, because a merge patch replaces lists as a
    whole."""
    stored = copy.deepcopy(history.view().get("podcliquesets", scenario.set_name))
    assert stored is not None, "the set was created"
    cliques = stored["spec"]["template"]["cliques"]
    for clique in cliques:
        if clique["name"] in images:
            for container in clique["spec"]["podSpec"]["containers"]:
                container["image"] = images[clique["name"]]
    return {"spec": {"template": {"cliques": cliques}}}


def _taken_down(history: History, mark: int) -> int:
    """Return the number of pods that were Ready and have been deleted since a mark."""
    ready_uids: set[str] = set()
    count = 0
    for record in history.records("pods"):
        if record.kind == "DELETED":
            count += record.seq > mark and record.uid in ready_uids
        elif pods.is_ready(record.object):
            ready_uids.add(record.uid)
    return count
