"""Judgement of the results of gang-scheduling scenarios: which requirements a breach of a rule breaks, and how the
failure is explained."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import Literal

from conformance.grove.fields import at
from conformance.grove.restricted import restricted
from conformance.grove.scheduling import history, outcomes, sampling, scenarios
from conformance.grove.scheduling.instance import Gang, Instance, SchedulingOutcome, is_admitted, survivors
from conformance.grove.scheduling.rules import Breach, certainly_fits
from conformance.grove.scheduling.scenarios import Scenario
from conformance.invariants.result import RuleResult
from conformance.suite.outcomes.checks import Blocked
from conformance.testing.part import counted
from conformance.testing.playing import AT_WORK, ScenarioResult, ScenarioRunner
from conformance.testing.scene import Recorded, Scene, SceneEnvironment

OF_HOST_PORTS = "SCHED-080"
"""The requirement about host ports. It has a separate scene, because clusters that enforce Pod Security refuse such
pods."""
OF_WHOLE_PODS = "SCHED-085"
"""The requirement about pod-level resources. Clusters without the feature PodLevelResources do not have the field."""
RULES: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("GS-20", "MUST"): "SCHED-020",
        ("GS-21", "MUST"): "SCHED-021",
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
        ("OR-10", "MUST"): OF_HOST_PORTS,
        ("OR-11", "MUST"): "SCHED-081",
        ("OR-12", "MUST"): "SCHED-082",
        ("OR-13", "MUST"): "SCHED-083",
        ("OR-14", "MUST"): "SCHED-084",
        ("OR-15", "MUST"): "SCHED-087",
        ("OR-16", "MUST"): "SCHED-088",
        ("GS-34", "MUST"): "TOPO-034",
        ("GS-35", "MUST"): "TOPO-035",
        ("OR-9", "SHOULD"): "TOPO-038",
    }
)
"""Rule and level → the requirement that a breach of the rule breaks in any scenario. A requirement that the scenario
names and that has no rule may be broken as well."""
OF_SCHEDULERS = (
    "SCHED-020",
    "SCHED-021",
    "SCHED-022",
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
    "SCHED-054",
    "SCHED-066",
    "SCHED-074",
    "SCHED-075",
    "SCHED-076",
    "SCHED-077",
    "SCHED-079",
    "SCHED-081",
    "SCHED-082",
    "SCHED-083",
    "SCHED-084",
    OF_WHOLE_PODS,
    "SCHED-086",
    "SCHED-087",
    "SCHED-088",
)
OF_DOMAINS = ("TOPO-034", "TOPO-035", "TOPO-036", "TOPO-037", "TOPO-038", "TOPO-039")
WITNESS = "GS-S01"
"""A scenario in which every gang can be placed."""
PLACES = frozenset(
    {
        "SCHED-022",
        "SCHED-024",
        "SCHED-025",
        "SCHED-026",
        "SCHED-027",
        "SCHED-028",
        "SCHED-041",
        "SCHED-048",
        "SCHED-052",
        "SCHED-075",
        "SCHED-077",
    }
)
"""The requirements that say that a gang that fits is placed. They count in the scenarios that name them. A waiting gang
does not break the other requirements of the profile."""
PLACES_IN_DOMAINS = frozenset({"TOPO-036", "TOPO-037", "TOPO-039"})
"""The requirements about topology domains that say that a gang that fits is placed. The other requirements about
domains restrict where pods are bound, but do not demand that they are bound."""
WITHHELD, SEARCH = "SCHED-024", "SCHED-075"
"""The requirements that are broken if a gang waits although it fits: WITHHELD if room may be reserved for another
waiting gang, SEARCH if only a search finds the room."""
SCALED = "SCHED-052"
"""The requirement about scaled gangs. Room may be reserved for another waiting gang instead of being given to a scaled
gang."""
ROOM = "SCHED-076"
"""The requirement about the resources of Pods that are terminating or have finished (Succeeded or Failed). No document
says whether they count as free."""
SURVIVORS = "SCHED-074"
"""The requirement about the remaining pods of a gang that has lost a pod. GREP-393 lets schedulers terminate such a
gang."""
OF_THEIR_OWN: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "SCHED-043": frozenset({"GS-26"}),
        "SCHED-048": frozenset({"GS-26"}),
        SURVIVORS: frozenset({"GS-30", "GS-31", "OR-8"}),
        ROOM: frozenset({"GS-26", "OR-1"}),
        OF_WHOLE_PODS: frozenset({"OR-1"}),
        "SCHED-086": frozenset({"OR-1"}),
    }
)
"""Requirement → rules. In a scenario that names the requirement, a breach of one of these rules breaks this requirement
and no other."""
EITHER, REPLICAS = "SCHED-027", "SCHED-077"
"""The requirements about two gangs of which only one fits, and about gangs of whole replicas."""
EVICTS = "SCHED-054"
"""The requirement that the scheduler preempts pods if that makes room for a gang of higher priority."""
EXTRA = "SCHED-079"
"""The requirement that pods above the minimums are bound where they fit. The documents promise only best effort."""
GATED = "SCHED-040"
"""The requirement about pods with gates. A scaled gang is placed before its base gang (GS-03), or a group gets more
pods than desired (OR-2), only if the scheduler ignores gates."""
ZERO = "SCHED-066"
"""The requirement about minimums of zero, whose meaning is undecided upstream (GS-45). A scenario with a minimum of
zero is judged by this requirement only."""
IN_PART = frozenset({"GS-20", "GS-21"})
"""Rules that a partly bound gang breaks."""
FURTHER_RULES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "SCHED-022": frozenset({"GS-21"}),
        EITHER: IN_PART | {"OR-1"},
        GATED: IN_PART,
        EVICTS: IN_PART | {"GS-28", "GS-30"},
        REPLICAS: IN_PART | {"OR-1"},
        "TOPO-036": frozenset({"GS-28", "GS-34"}),
        "TOPO-037": frozenset({"GS-28"}),
        "TOPO-039": frozenset({"GS-28"}),
    }
)
"""Requirement without its own rule → rules of other requirements. In a scenario that names the requirement, a breach of
one of these rules also breaks the requirement if the breach concerns its gangs (`_concerns_gangs_of`). A gang that
waits although it fits (GS-26) is handled separately."""
GENERATED = 10
"""The number of instances that are generated for a scene."""
MAX_WAYS = 2_000
"""The maximum number of pod distributions for which all permitted outcomes are listed."""
SHOWN = 4


def cast(scenarios: Sequence[Scenario], ids: Sequence[str], features: Collection[str] = ()) -> list[Scenario]:
    """Return the scenarios about these requirements that an implementation with these features can express, together
    with the scenario that shows whether a scheduler works at all."""
    selected = [
        scenario for scenario in scenarios if scenario.id == WITNESS or not set(scenario.checks).isdisjoint(ids)
    ]
    return [scenario for scenario in selected if sampling.is_expressible(scenario.instance, features)]


class Scenarios(Scene):
    """A scene that runs gang-scheduling scenarios."""

    played: list[ScenarioResult]
    """The results of the scenarios. A scenario with a change has a second result, after the change."""
    at_once: bool
    """Whether the scheduler saw everything at once."""
    ranked: bool = True
    """Whether the scheduler supports priorities."""
    whole_pods: bool = True
    """Whether the API server keeps pod-level resources."""

    def play_all(self, env: SceneEnvironment, cast: Sequence[Scenario]) -> None:
        """Run the scenarios at the same time, except those with fields that the API server drops."""
        self.whole_pods = not any(map(_of_whole_pods, cast)) or _keeps_pod_resources(env)
        runner = ScenarioRunner(env, [scenario for scenario in cast if self.whole_pods or not _of_whole_pods(scenario)])
        played = runner.run()
        self.at_once, self.ranked, self.played = runner.at_once, runner.ranked, played

    @cached_property
    def broken(self) -> Mapping[str, list[tuple[ScenarioResult, list[Breach]]]]:
        """Requirement → the scenarios that break it, each with the breaches of rules that show this."""
        result: dict[str, list[tuple[ScenarioResult, list[Breach]]]] = {}
        for played in self.played:
            for id, breaches in attributed(played, self.breaches_of(played)).items():
                result.setdefault(id, []).append((played, breaches))
        return result

    def breaches_of(self, played: ScenarioResult) -> list[Breach]:
        """Return the breaches that count for this scheduler."""
        breaches = breaches_of(played, at_once=self.at_once, ranked=self.ranked)
        return [proven(breach, played, self.played) for breach in breaches]


def judge(run: Recorded[Scenarios], id: str) -> None:
    """Make one failed check for each scenario that breaks the requirement, or one passing check if no scenario does."""
    run.given(AT_WORK)
    if id == OF_WHOLE_PODS and not run.scene.whole_pods:
        raise Blocked("the API server drops spec.resources of pods: it lacks PodLevelResources", "circumstances")
    for played, breaches in run.scene.broken.get(id, ()):
        description = f"{_name(played)}: {played.scenario.about or 'the outcome is permitted'}"
        run.holds(description, RuleResult("", description, False, explained(played, breaches)))
    if id not in run.scene.broken:
        run.holds(f"{len(run.scene.played)} scenarios come to rest where they may", True)


def _of_whole_pods(scenario: Scenario) -> bool:
    groups = [group for gang in scenario.instance.gangs for group in gang.groups]
    return any(group.demands.get("requestedBy") == "pod" for group in groups)


def _keeps_pod_resources(env: SceneEnvironment) -> bool:
    """Return whether the API server keeps the pod-level resources of pods. If it rejects the pod, the field may still
    be known."""
    spec = restricted({"containers": [{"name": "main", "image": "registry.example/probe:1"}]})
    spec["resources"] = {"requests": {"cpu": "1"}}
    probe = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": spec}
    reply = env.dry_run.ask(env.dry_run.create(probe))
    return not reply.accepted or bool(at(reply.object, "spec", "resources"))


def attributed(played: ScenarioResult, breaches: Sequence[Breach]) -> dict[str, list[Breach]]:
    """Return requirement → the breaches with which this scenario breaks it."""
    result: dict[str, list[Breach]] = {}
    needless = {breach.gang for breach in breaches if breach.rule == "GS-26"}
    for breach in breaches:
        for id in dict.fromkeys(_broken_by(breach, played, needless)):
            result.setdefault(id, []).append(breach)
    if any(played.scenario.expected.victims) and not played.changed and not played.outcome.victims:
        result[EVICTS] = [Breach("GS-30", "", "nothing is evicted, although that would make room", "SHOULD")]
    return result


def _broken_by(breach: Breach, played: ScenarioResult, needless: Collection[str]) -> list[str]:
    """Return the requirements that a breach breaks. `needless` is the set of gangs that wait although they fit."""
    checks, must, home = played.scenario.checks, breach.level == "MUST", RULES.get((breach.rule, breach.level))
    if played.instance.has_zero_minimum:
        return [ZERO] if must else []
    if breach.extra:
        waiting = any(not is_admitted(played.instance, played.outcome, gang) for gang in played.instance.gangs)
        return [] if waiting else [EXTRA]
    if own_requirements := [id for id in checks if breach.rule in OF_THEIR_OWN.get(id, ())]:
        return own_requirements
    if not must:
        return [home] if home else []
    if breach.rule in ("GS-03", "OR-2"):
        return [GATED]
    if breach.rule in ("GS-30", "GS-31") and _terminated_by_scheduler(breach.gang, played):
        return [SURVIVORS]
    if breach.rule in ("GS-26", "GS-28", "OR-1") and not _holds_in_any_accounting(breach, played):
        return [ROOM]
    if breach.rule == "GS-31" and home:  # an earlier placement may have been right
        return [home]
    if breach.rule in ("GS-26", "GS-28") and not certainly_fits(played.instance, played.outcome, breach):
        return [SEARCH, *(id for id in checks if id in PLACES_IN_DOMAINS)]
    if breach.rule == "GS-26":
        placement_requirements = [id for id in checks if id in PLACES or id in PLACES_IN_DOMAINS]
        waiting_gangs = [
            gang for gang in played.instance.gangs if not is_admitted(played.instance, played.outcome, gang)
        ]
        if any(gang.name not in needless for gang in waiting_gangs):
            return [WITHHELD, *(id for id in checks if id in PLACES and id not in (home, SCALED))]
        return [*placement_requirements, home] if home else placement_requirements
    other_requirements = [
        id for id in checks if breach.rule in FURTHER_RULES.get(id, ()) and _concerns_gangs_of(id, breach, played)
    ]
    return [*other_requirements, *([home] if home else [])]


def _concerns_gangs_of(id: str, breach: Breach, played: ScenarioResult) -> bool:
    """Return whether a requirement without its own rule is about the gangs of this breach."""
    instance, outcome = played.instance, played.outcome
    placed = {gang.name for gang in instance.gangs if is_admitted(instance, outcome, gang)}
    if id == EITHER:
        return breach.rule != "OR-1" or len(placed) != 1
    if id == GATED:
        return any(group.gated for group in instance.gang(breach.gang).groups)
    if id == EVICTS:
        return max(instance.gangs, key=lambda gang: gang.priority).name not in placed
    if id == REPLICAS and breach.rule == "OR-1":
        return any(gang.name in played.scenario.expected.never for gang in _gangs_with_pods(played) if not gang.base)
    return id != REPLICAS or not instance.gang(breach.gang).base


def _terminated_by_scheduler(name: str, played: ScenarioResult) -> bool:
    """Return whether a gang was below its minimum before any of its pods was evicted, and no pod of this gang or of a
    gang with higher priority was bound. In that case the scheduler preempted nothing, but terminated the gang because
    it had lost a pod."""
    gang = next((gang for gang in played.instance.gangs if gang.name == name), None)
    if gang is None or any(other is gang or other.priority > gang.priority for other in _gangs_with_pods(played)):
        return False
    bound = [survivors(played.instance, SchedulingOutcome(), name, group.name).total() for group in gang.groups]
    return any(bound) and any(count < group.minimum for count, group in zip(bound, gang.groups, strict=True))


def _holds_in_any_accounting(breach: Breach, played: ScenarioResult) -> bool:
    """Return whether a breach holds in both ways of counting room. For OR-1, the other way is that terminating pods and
    victims hold no room. For the other rules, it is that finished pods still hold their room unless the scheduler has
    used it."""
    observed = [move.step for move in played.moves]
    state: Literal["terminating", "finished"] = "finished" if breach.rule == "OR-1" else "terminating"
    running = [pod if pod.state == "running" else replace(pod, state=state) for pod in played.instance.running]
    names = {pod.name for pod in running if breach.rule == "OR-1"}
    victims = [step for step in observed if isinstance(step, history.PodDeleted) and step.pod in names]
    instance = replace(played.instance, running=tuple(running))
    steps = [*victims, *(step for step in observed if step not in victims)]
    if (instance, steps) == (played.instance, observed):
        return True
    breaches = history.find_breaches(instance, steps, recreated=played.outcome.recreated)
    return any(other.rule == "OR-1" or (other.rule, other.gang) == (breach.rule, breach.gang) for other in breaches)


def _gangs_with_pods(played: ScenarioResult) -> list[Gang]:
    """Return the gangs that have bound pods."""
    return [gang for gang in played.instance.gangs if any(played.outcome.placed.get(gang.name, {}).values())]


def breaches_of(played: ScenarioResult, *, at_once: bool = True, ranked: bool = True) -> list[Breach]:
    """Return the breaches of the rules during a scenario and at its end."""
    steps = [move.step for move in played.moves]
    breaches = history.find_breaches(played.instance, steps, recreated=played.outcome.recreated)
    breaches += [*_stale_nominations(played), *_missed_preferences(played)]
    return counted(breaches, played.instance, at_once=at_once, ranked=ranked)


def proven(breach: Breach, played: ScenarioResult, results: Iterable[ScenarioResult]) -> Breach:
    """Return the breach that is proven, given that the scenarios of all `results` ran in the same queue.

    A pod may have been evicted for a gang of another scenario with a higher priority, if that gang was bound after the
    eviction. That gang may preempt, so GS-30 is not broken. It cannot use the pod's node, so more was evicted than
    needed (GS-32).
    """
    evictions = [move.at for move in played.moves if move.step == history.PodDeleted(breach.victim)]
    if breach.rule != "GS-30" or not evictions:
        return breach
    priority = next(played.instance.priority(pod) for pod in played.instance.running if pod.name == breach.victim)
    for result in results:
        gangs = {gang.name: gang.priority for gang in result.instance.gangs}
        for move in result.moves if result.scenario.id != played.scenario.id else ():
            step = move.step
            if (
                isinstance(step, history.PodBound)
                and move.at > evictions[0]
                and gangs.get(step.gang, priority) > priority
            ):
                whom = f"{step.gang} of {result.scenario.id}, which cannot use its node"
                return Breach("GS-32", breach.gang, f"{breach.victim} was evicted, perhaps for {whom}", "SHOULD")
    return breach


def explained(played: ScenarioResult, breaches: Iterable[Breach]) -> str:
    """Return an explanation: the outcome, the breaches, the permitted outcomes, and the YAML that reproduces the
    scenario."""
    lines = [f"seen: {scenarios.notation(played.outcome)}", *(f"breach: {breach}" for breach in breaches)]
    lines += [f"permitted: {scenarios.notation(outcome)}" for outcome in nearest(played.instance, played.outcome)]
    if played.changed:
        lines.append("this is what came of it after the change that the scenario ends with")
    lines += ["scenario:", scenarios.to_yaml(played.scenario.instance, played.scenario.about)]
    return "\n".join(lines)


def nearest(instance: Instance, observed: SchedulingOutcome) -> list[SchedulingOutcome]:
    """Return the permitted outcomes that are most similar to the observed outcome, most similar first. Return none if
    there are too many to compare."""
    ways = 1
    for gang in instance.gangs:
        for group in gang.groups:
            ways *= (1 + len(instance.nodes)) ** group.desired
    if ways > MAX_WAYS or len(instance.running) > 6:
        return []
    allowed = list(islice(outcomes.permitted_outcomes(instance), MAX_WAYS))
    return sorted(allowed, key=lambda outcome: _distance(instance, outcome, observed))[:SHOWN]


def _distance(instance: Instance, one: SchedulingOutcome, other: SchedulingOutcome) -> int:
    groups = [(gang.name, group.name) for gang in instance.gangs for group in gang.groups]
    places = {(g, h, node) for g, h in groups for o in (one, other) for node in o.of(g, h)}
    moved = sum(abs(one.of(g, h).get(node, 0) - other.of(g, h).get(node, 0)) for g, h, node in places)
    return moved + len(one.evicted ^ other.evicted)


def _stale_nominations(played: ScenarioResult) -> Iterable[Breach]:
    """Yield a breach for each waiting pod that remains nominated for a node although no pod is evicted or terminating
    (GS-24)."""
    if not played.outcome.evicted and not any(pod.state == "terminating" for pod in played.instance.running):
        for pod, node in sorted(played.nominated.items()):
            yield Breach("GS-24", "", f"{pod} waits and is nominated for {node}")


def _missed_preferences(played: ScenarioResult) -> Iterable[Breach]:
    """Yield a breach if preferred topology constraints could have been met better (OR-9)."""
    if not any(scope.preferred for gang in played.instance.gangs for scope in gang.scopes):
        return
    if not played.scenario.enumerable or played.scenario.expected.should is None:
        return
    score = outcomes.score(played.instance, played.outcome)
    best = max(
        (outcomes.score(played.instance, good) for good in outcomes.permitted_outcomes(played.instance)), default=score
    )
    if score < best:
        yield Breach("OR-9", "", f"preferences are met by {score:.2f}, and could be by {best:.2f}", "SHOULD")


def _name(played: ScenarioResult) -> str:
    return played.scenario.id + (", after its change" if played.changed else "")
