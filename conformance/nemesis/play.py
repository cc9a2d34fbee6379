"""Play one scenario, with or without a fault, and say how each step ended."""

from __future__ import annotations

import contextlib
import copy
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from conformance.grove import health, pods
from conformance.grove.fields import name
from conformance.history.query import History, WaitTimeout
from conformance.history.view import View
from conformance.nemesis import normal_form
from conformance.nemesis.bed import Bed
from conformance.nemesis.faults import Plan, Striking, Watching
from conformance.nemesis.points import Point
from conformance.nemesis.scenario import Scenario, Step

CRASHED = {"containers": {"started": False, "lastExit": 1}}
LIMIT = 60.0
"""Seconds within which a step without a fault must be at rest."""
PATIENCE = 25.0
"""Seconds without a change after which a state that differs is the end: longer than the back-off after a few errors."""
LONGEST = 90.0
"""Seconds after which a step with a fault that is never at rest is stuck."""
GONE = 30.0
"""Seconds within which a deleted set and all that belongs to it must be gone."""


class Verdict(StrEnum):
    """How a plan has ended."""

    SAME = "same"
    NOT_STRUCK = "not struck"
    DIFFERENT = "different"
    STUCK = "stuck"
    LEFT = "left behind"


@dataclass
class Rest:
    """The end of a step. `taken_down`: pods that were Ready and are gone; `seconds` since the act."""

    form: normal_form.Form
    seconds: float
    taken_down: int
    writes: int


@dataclass
class Course:
    """What a scenario came to without a fault. `masked`: paths that differ from one run to the other."""

    rests: Mapping[str, Rest]
    points: Sequence[Point]
    masked: frozenset[str] = frozenset()


@dataclass
class Outcome:
    """What a plan came to."""

    plan: Plan
    verdict: Verdict
    seconds: float
    lines: list[str] = field(default_factory=list)


class NotAtRest(Exception):
    """A scenario did not come to rest without a fault."""


_numbers = itertools.count(1)


def faultless(bed: Bed, scenario: Scenario) -> Course:
    """Play a scenario without a fault. Raises NotAtRest."""
    namespace = f"n{next(_numbers)}"
    rests: dict[str, Rest] = {}
    points: list[Point] = []
    with bed.namespace(namespace) as history:
        for step in scenario.steps:
            watching = Watching(step.name, namespace)
            bed.interfere(watching)
            begin, since = time.monotonic(), history.mark()
            _act(bed, scenario, step, history)
            try:
                history.quiet(step.rest, LIMIT)
            except WaitTimeout as error:
                raise NotAtRest(f"{scenario.name}, step {step.name}: {error}") from None
            seconds = time.monotonic() - begin - step.rest
            view = history.view()
            form = normal_form.normal_form(view, namespace)
            rests[step.name] = Rest(form, seconds, _taken_down(history, since), len(watching.seen))
            if not step.quiet:
                points += watching.seen
        if left := _clean(bed, scenario, history):
            raise NotAtRest(f"{scenario.name}: after the set was deleted, there is still {', '.join(left)}")
    return Course(rests, points)


def learn(bed: Bed, scenario: Scenario, runs: int = 2) -> Course:
    """Play a scenario several times without a fault, and mask what differs. The points are those of the last run."""
    courses = [faultless(bed, scenario) for _ in range(runs)]
    masked = frozenset[str]().union(
        *(normal_form.varying(course.rests[step.name].form for course in courses) for step in scenario.steps)
    )
    last = courses[-1]
    rests = {step: replace(rest, form=normal_form.without(rest.form, masked)) for step, rest in last.rests.items()}
    return Course(rests, last.points, masked)


def play(bed: Bed, scenario: Scenario, course: Course, plan: Plan) -> Outcome:
    """Play a plan."""
    namespace, begin = f"n{next(_numbers)}", time.monotonic()
    striking = Striking(plan.point.step, namespace, plan=plan, kill=bed.kill_and_restart)
    with bed.namespace(namespace) as history:
        found: Outcome | None = None
        for step in scenario.steps:
            struck_here = step.name == plan.point.step
            bed.interfere(striking if struck_here else Watching(step.name, namespace))
            since = history.mark()
            _act(bed, scenario, step, history)
            verdict, lines = _ends(bed, history, step, course, namespace)
            if struck_here and not striking.struck and verdict is Verdict.SAME:
                verdict = Verdict.NOT_STRUCK
            down = _taken_down(history, since)
            if verdict is Verdict.SAME and down > course.rests[step.name].taken_down:
                verdict = Verdict.DIFFERENT
                lines = [f"{down} pods that were Ready are gone, {course.rests[step.name].taken_down} without the fault"]
            if verdict is not Verdict.SAME:
                found = Outcome(plan, verdict, 0, [f"in step {step.name}", *lines])
                break
        left = _clean(bed, scenario, history)
        if left and (found is None or found.verdict is Verdict.NOT_STRUCK):
            found = Outcome(plan, Verdict.LEFT, 0, [f"still there {GONE:g} s after the set was deleted: {', '.join(left)}"])
    found = found or Outcome(plan, Verdict.SAME, 0)
    found.seconds = time.monotonic() - begin
    return found


def _ends(bed: Bed, history: History, step: Step, course: Course, namespace: str) -> tuple[Verdict, list[str]]:
    """Wait until a step ends as it does without the fault, or otherwise."""
    wanted = course.rests[step.name].form
    deadline, calm_since = time.monotonic() + LONGEST, time.monotonic()
    while True:
        mark = history.mark()
        with contextlib.suppress(WaitTimeout):
            mark = history.quiet(step.rest, step.rest * 2)
        now = time.monotonic()
        if history.mark() != mark:
            calm_since = now
        calm = now - calm_since >= PATIENCE
        found = normal_form.without(normal_form.normal_form(history.view(), namespace), course.masked)
        if found == wanted and history.still >= step.rest:
            return Verdict.SAME, []
        if calm or now > deadline:
            return Verdict.DIFFERENT if calm else Verdict.STUCK, normal_form.difference(wanted, found)


def _act(bed: Bed, scenario: Scenario, step: Step, history: History) -> None:
    namespace, arguments = history.namespace, step.arguments
    history.stir()
    match step.act:
        case "create":
            bed.api.create(bed.manifest(scenario.manifest, namespace))
        case "delete":
            bed.api.delete("podcliquesets", namespace, [scenario.set_name])
        case "patch":
            for patch in arguments:
                bed.api.patch(patch["resource"], namespace, patch["name"], patch["body"], patch.get("subresource"))
        case "image":
            bed.api.patch("podcliquesets", namespace, scenario.set_name, _with_images(bed, scenario, history, arguments))
        case "crash":
            for pod in history.view().list("pods"):
                if name(pod).startswith(f"{arguments}-"):
                    hold = {"metadata": {"annotations": {health.HOLD_STATUS: "yes"}}}
                    bed.api.patch("pods", namespace, name(pod), hold)
                    bed.api.patch("pods", namespace, name(pod), health.status(pod, CRASHED), "status")


def _with_images(bed: Bed, scenario: Scenario, history: History, images: Mapping[str, str]) -> dict[str, object]:
    """Return a merge patch: a list is replaced whole, so it has what is stored."""
    stored = copy.deepcopy(history.view().get("podcliquesets", scenario.set_name))
    assert stored is not None, "the set was created"
    cliques = stored["spec"]["template"]["cliques"]
    for clique in cliques:
        if clique["name"] in images:
            for container in clique["spec"]["podSpec"]["containers"]:
                container["image"] = images[clique["name"]]
    return {"spec": {"template": {"cliques": cliques}}}


def _clean(bed: Bed, scenario: Scenario, history: History) -> list[str]:
    """Delete the set. Return what is still there of it after a while."""
    bed.interfere(Watching("clean", history.namespace))
    bed.api.delete("podcliquesets", history.namespace, [scenario.set_name])

    def gone(view: View) -> bool:
        return not _objects(view, history.namespace)

    try:
        history.wait("all gone", gone, GONE)
    except WaitTimeout as error:
        return _objects(error.view, history.namespace)
    return []


def _objects(view: View, namespace: str) -> list[str]:
    return [
        f"{resource}/{name(item)}"
        for resource in view.resources()
        if resource not in normal_form.IGNORED
        for item in view.list(resource)
        if item["metadata"].get("namespace") == namespace
    ]


def _taken_down(history: History, since: int) -> int:
    """Return how many pods that were Ready are gone since a mark."""
    ready: set[str] = set()
    gone = 0
    for record in history.records("pods"):
        if record.kind == "DELETED":
            gone += record.seq > since and record.uid in ready
        elif pods.ready(record.object):
            ready.add(record.uid)
    return gone
