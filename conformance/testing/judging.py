"""Judge played scenarios of gang scheduling: which requirements a breach breaks, and how to explain it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

from conformance.grove.scheduling import history, outcomes, scenarios
from conformance.grove.scheduling.history import Bound, Gone
from conformance.grove.scheduling.instance import Instance, Outcome, admitted
from conformance.grove.scheduling.rules import Breach
from conformance.grove.scheduling.scenarios import Scenario
from conformance.invariants.result import RuleResult
from conformance.suite.case import Case
from conformance.testing.playing import Play, Scene, counted

RULES: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("GS-20", "MUST"): "SCHED-020",
        ("GS-21", "MUST"): "SCHED-021",
        ("GS-23", "MUST"): "SCHED-023",
        ("GS-24", "MUST"): "SCHED-024",
        ("GS-26", "MUST"): "SCHED-026",
        ("GS-28", "MUST"): "SCHED-028",
        ("GS-30", "MUST"): "SCHED-030",
        ("OR-8", "MUST"): "SCHED-030",
        ("GS-31", "MUST"): "SCHED-031",
        ("GS-32", "SHOULD"): "SCHED-032",
        ("GS-42", "MUST"): "SCHED-042",
        ("OR-1", "MUST"): "SCHED-050",
        ("OR-6", "SHOULD"): "SCHED-051",
        ("GS-31", "SHOULD"): "SCHED-055",
        ("GS-34", "MUST"): "TOPO-034",
        ("GS-35", "MUST"): "TOPO-035",
        ("OR-9", "SHOULD"): "TOPO-038",
    }
)
"""Rule and level → the requirement that it breaks, whatever the scenario; in addition to those that the scenario names
and that have no rule of their own."""
OF_SCHEDULERS = (
    "SCHED-020",
    "SCHED-021",
    "SCHED-022",
    "SCHED-023",
    "SCHED-024",
    "SCHED-025",
    "SCHED-026",
    "SCHED-027",
    "SCHED-028",
    "SCHED-030",
    "SCHED-031",
    "SCHED-032",
    "SCHED-040",
    "SCHED-041",
    "SCHED-042",
    "SCHED-043",
    "SCHED-048",
    "SCHED-050",
    "SCHED-051",
    "SCHED-052",
    "SCHED-053",
    "SCHED-054",
    "SCHED-055",
    "SCHED-060",
)
OF_DOMAINS = ("TOPO-034", "TOPO-035", "TOPO-036", "TOPO-037", "TOPO-038", "TOPO-039")
WITNESS = "GS-S01"
"""A scenario in which every gang can be placed."""
UNGATED = "SCHED-053"
"""Requirements that are judged in scenes without gates on scaled gangs."""
EVICTS = "SCHED-054"
"""The requirement that the scheduler preempts where that helps."""
FEW = 2_000
"""Maximum number of distributions of pods for which all permitted outcomes are listed."""
SHOWN = 4


def cast(known: Sequence[Scenario], ids: Sequence[str]) -> list[Scenario]:
    """Return the scenarios about these requirements, and one that shows whether a scheduler is at work at all."""
    return [one for one in known if one.id == WITNESS or not set(one.checks).isdisjoint(ids)]


def judge(case: Case, play: Play, scenes: Sequence[Scene], ids: Sequence[str]) -> None:
    """Make one check for each requirement and scene that breaks it, and a pass for requirements that no scene
    breaks."""
    wrong: dict[str, list[tuple[Scene, list[Breach]]]] = {id: [] for id in ids}
    for scene in scenes:
        for id, breaches in attributed(scene, breaches_of(scene, at_once=play.at_once)).items():
            if id in wrong:
                wrong[id].append((scene, breaches))
    for id, found in wrong.items():
        for scene, breaches in found:
            what = f"{_name(scene)}: {scene.scenario.about or 'the outcome is permitted'}"
            case.holds(id, what, RuleResult("", what, False, explained(scene, breaches)))
        if not found:
            case.holds(id, f"{len(scenes)} scenarios come to rest where they may", True)


def attributed(scene: Scene, breaches: Sequence[Breach]) -> dict[str, list[Breach]]:
    """Return the requirements that a scene breaks, each with its breaches."""
    found: dict[str, list[Breach]] = {}
    for breach in breaches:
        must, home = breach.level == "MUST", RULES.get((breach.rule, breach.level))
        named = [id for id in scene.scenario.checks if must and _takes(id, breach, home)]
        named += [home] if home else []
        if not scene.gates:
            named = [UNGATED] if must else []
        for id in dict.fromkeys(named):
            found.setdefault(id, []).append(breach)
    if any(scene.scenario.expected.victims) and not scene.changed and not scene.outcome.evicted:
        found[EVICTS] = [Breach("GS-30", "", "nobody is evicted, though that would make room", "SHOULD")]
    return found


def _takes(id: str, breach: Breach, home: str | None) -> bool:
    """Return whether a breach breaks a requirement that the scenario names. One with a rule of its own is not broken by
    rules of other requirements of its profile, unless a gang was simply not placed."""
    elsewhere = home is not None and home != id and home.partition("-")[0] == id.partition("-")[0]
    return id not in RULES.values() or not elsewhere or breach.rule == "GS-26"


def breaches_of(scene: Scene, *, at_once: bool = True) -> list[Breach]:
    """Return what is wrong during the scene and at its end."""
    found = history.judged(scene.instance, [move.step for move in scene.moves])
    found += [*_torn_for_long(scene), *_nominated(scene), *_unloved(scene)]
    return counted(found, scene.instance, gates=scene.gates, at_once=at_once)


def explained(scene: Scene, breaches: Iterable[Breach]) -> str:
    """Return the outcome, the breaches, the permitted outcomes, and the YAML that reproduces it."""
    lines = [f"seen: {scenarios.notation(scene.outcome)}", *(f"breach: {breach}" for breach in breaches)]
    lines += [f"permitted: {scenarios.notation(outcome)}" for outcome in nearest(scene.instance, scene.outcome)]
    if scene.changed:
        lines.append("this is what came of it after the change that the scenario ends with")
    lines += ["scenario:", scenarios.shown(scene.scenario.instance, scene.scenario.about)]
    return "\n".join(lines)


def nearest(instance: Instance, seen: Outcome) -> list[Outcome]:
    """Return some permitted outcomes, the ones most similar to the observed one first; empty if there are too many."""
    ways = 1
    for gang in instance.gangs:
        for group in gang.groups:
            ways *= (1 + len(instance.nodes)) ** group.desired
    if ways > FEW or len(instance.running) > 6:
        return []
    allowed = list(islice(outcomes.permitted(instance), FEW))
    return sorted(allowed, key=lambda outcome: _distance(instance, outcome, seen))[:SHOWN]


def _distance(instance: Instance, one: Outcome, other: Outcome) -> int:
    groups = [(gang.name, group.name) for gang in instance.gangs for group in gang.groups]
    places = {(g, h, node) for g, h in groups for o in (one, other) for node in o.of(g, h)}
    moved = sum(abs(one.of(g, h).get(node, 0) - other.of(g, h).get(node, 0)) for g, h, node in places)
    return moved + len(one.evicted ^ other.evicted)


def _torn_for_long(scene: Scene) -> Iterable[Breach]:
    """Yield gangs that were bound in part for longer than binding takes (GS-23), except gangs that have lost pods."""
    since: dict[str, float] = {}
    alive: dict[str, Bound] = {}
    gone: set[str] = set()
    old = {pod.gang for pod in scene.instance.running}
    moments = [*((move.at, move.step) for move in scene.moves), (scene.end, None)]
    for at, step in moments:
        for name, begin in list(since.items()):
            if at - begin > scene.within:
                yield Breach("GS-23", name, f"was bound in part for {at - begin:.0f} s")
                del since[name]
        if isinstance(step, Bound):
            alive[step.pod] = step
        elif isinstance(step, Gone) and alive.pop(step.pod, None) is None:
            gone.add(step.pod)
        now = history.outcome(alive.values(), gone)
        for gang in scene.instance.gangs:
            torn = any(now.placed.get(gang.name, {}).values()) and not admitted(scene.instance, now, gang)
            if torn and gang.name not in old:
                since.setdefault(gang.name, at)
            else:
                since.pop(gang.name, None)


def _nominated(scene: Scene) -> Iterable[Breach]:
    """Yield waiting pods that stay nominated for a node although nothing is evicted for them (GS-24)."""
    if not scene.outcome.evicted and not any(pod.state == "terminating" for pod in scene.instance.running):
        for pod, node in sorted(scene.nominated.items()):
            yield Breach("GS-24", "", f"{pod} waits and is nominated for {node}")


def _unloved(scene: Scene) -> Iterable[Breach]:
    """Yield preferences that could have been met better (OR-9)."""
    if not any(scope.preferred for gang in scene.instance.gangs for scope in gang.scopes):
        return
    if not scene.scenario.enumerable or scene.scenario.expected.should is None:
        return
    seen = outcomes.score(scene.instance, scene.outcome)
    best = max((outcomes.score(scene.instance, good) for good in outcomes.permitted(scene.instance)), default=seen)
    if seen < best:
        yield Breach("OR-9", "", f"preferences are met by {seen:.2f}, and could be by {best:.2f}", "SHOULD")


def _name(scene: Scene) -> str:
    return (
        scene.scenario.id + ("" if scene.gates else " without gates") + (", after its change" if scene.changed else "")
    )
