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
from conformance.testing.part import counted_breaches
from conformance.testing.playing import SCHEDULER_WORKS, ScenarioResult, ScenarioRunner
from conformance.testing.scene import Recorded, Scene, SceneEnvironment

HOST_PORTS = "SCHED-080"
"""The requirement about host ports. It has a separate scene, because clusters that enforce Pod Security refuse such
pods."""
POD_LEVEL_RESOURCES = "SCHED-085"
"""The requirement about pod-level resources. Clusters without the feature PodLevelResources do not have the field."""
REQUIREMENT_BY_RULE: Mapping[tuple[str, str], str] = MappingProxyType(
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
        ("OR-10", "MUST"): HOST_PORTS,
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
SCHEDULER_REQUIREMENTS = (
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
    POD_LEVEL_RESOURCES,
    "SCHED-086",
    "SCHED-087",
    "SCHED-088",
)
DOMAIN_REQUIREMENTS = ("TOPO-034", "TOPO-035", "TOPO-036", "TOPO-037", "TOPO-038", "TOPO-039")
WITNESS_SCENARIO = "GS-S01"
"""A scenario in which every gang can be placed."""
PLACEMENT_REQUIREMENTS = frozenset(
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
DOMAIN_PLACEMENT_REQUIREMENTS = frozenset({"TOPO-036", "TOPO-037", "TOPO-039"})
"""The requirements about topology domains that say that a gang that fits is placed. The other requirements about
domains restrict where pods are bound, but do not demand that they are bound."""
WITHHELD_ROOM, SEARCHED_ROOM = "SCHED-024", "SCHED-075"
"""The requirements that are broken if a gang waits although it fits: WITHHELD_ROOM if room may be reserved for another
waiting gang, SEARCHED_ROOM if only a search finds the room."""
SCALED_GANGS = "SCHED-052"
"""The requirement about scaled gangs. Room may be reserved for another waiting gang instead of being given to a scaled
gang."""
ENDED_PODS = "SCHED-076"
"""The requirement about the resources of Pods that are terminating or have finished (Succeeded or Failed). No document
says whether they count as free."""
REMAINING_PODS = "SCHED-074"
"""The requirement about the remaining pods of a gang that has lost a pod. GREP-393 lets schedulers terminate such a
gang."""
EXCLUSIVE_RULES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "SCHED-043": frozenset({"GS-26"}),
        "SCHED-048": frozenset({"GS-26"}),
        REMAINING_PODS: frozenset({"GS-30", "GS-31", "OR-8"}),
        ENDED_PODS: frozenset({"GS-26", "OR-1"}),
        POD_LEVEL_RESOURCES: frozenset({"OR-1"}),
        "SCHED-086": frozenset({"OR-1"}),
    }
)
"""Requirement → rules. In a scenario that names the requirement, a breach of one of these rules breaks this requirement
and no other."""
ONE_OF_TWO_GANGS, WHOLE_REPLICAS = "SCHED-027", "SCHED-077"
"""The requirements about two gangs of which only one fits, and about gangs of whole replicas."""
PREEMPTION_REQUIREMENT = "SCHED-054"
"""The requirement that the scheduler preempts pods if that makes room for a gang of higher priority."""
EXTRA_PODS = "SCHED-079"
"""The requirement that pods above the minimums are bound where they fit. The documents promise only best effort."""
GATED_PODS = "SCHED-040"
"""The requirement about pods with gates. A scaled gang is placed before its base gang (GS-03), or a group gets more
pods than desired (OR-2), only if the scheduler ignores gates."""
ZERO_MINIMUMS = "SCHED-066"
"""The requirement about minimums of zero, whose meaning is undecided upstream (GS-45). A scenario with a minimum of
zero is judged by this requirement only."""
PARTIAL_GANG_RULES = frozenset({"GS-20", "GS-21"})
"""Rules that a partly bound gang breaks."""
ADDITIONAL_RULES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "SCHED-022": frozenset({"GS-21"}),
        ONE_OF_TWO_GANGS: PARTIAL_GANG_RULES | {"OR-1"},
        GATED_PODS: PARTIAL_GANG_RULES,
        PREEMPTION_REQUIREMENT: PARTIAL_GANG_RULES | {"GS-28", "GS-30"},
        WHOLE_REPLICAS: PARTIAL_GANG_RULES | {"OR-1"},
        "TOPO-036": frozenset({"GS-28", "GS-34"}),
        "TOPO-037": frozenset({"GS-28"}),
        "TOPO-039": frozenset({"GS-28"}),
    }
)
"""Requirement without its own rule → rules of other requirements. In a scenario that names the requirement, a breach of
one of these rules also breaks the requirement if the breach concerns its gangs (`_concerns_gangs_of`). A gang that
waits although it fits (GS-26) is handled separately."""
GENERATED_INSTANCES = 10
"""The number of instances that are generated for a scene."""
MAX_DISTRIBUTIONS = 2_000
"""The maximum number of pod distributions for which all permitted outcomes are listed."""
MAX_SHOWN_OUTCOMES = 4


def expressible_scenarios(
    scenarios: Sequence[Scenario], ids: Sequence[str], features: Collection[str] = ()
) -> list[Scenario]:
    """Return the scenarios about these requirements that an implementation with these features can express, together
    with the scenario that shows whether a scheduler works at all."""
    selected = [
        scenario
        for scenario in scenarios
        if scenario.id == WITNESS_SCENARIO or not set(scenario.checks).isdisjoint(ids)
    ]
    return [scenario for scenario in selected if sampling.is_expressible(scenario.instance, features)]


class Scenarios(Scene):
    """A scene that runs gang-scheduling scenarios."""

    results: list[ScenarioResult]
    """The results of the scenarios. A scenario with a change has a second result, after the change."""
    saw_everything_at_once: bool
    """Whether the scheduler saw everything at once."""
    has_priorities: bool = True
    """Whether the scheduler supports priorities."""
    keeps_pod_resources: bool = True
    """Whether the API server keeps pod-level resources."""

    def run_all(self, env: SceneEnvironment, scenarios: Sequence[Scenario]) -> None:
        """Run the scenarios at the same time, except those with fields that the API server drops."""
        self.keeps_pod_resources = not any(map(_uses_pod_level_resources, scenarios)) or _keeps_pod_resources(env)
        runner = ScenarioRunner(
            env,
            [scenario for scenario in scenarios if self.keeps_pod_resources or not _uses_pod_level_resources(scenario)],
        )
        result = runner.run()
        self.saw_everything_at_once, self.has_priorities, self.results = (
            runner.saw_everything_at_once,
            runner.has_priorities,
            result,
        )

    @cached_property
    def failures_by_requirement(self) -> Mapping[str, list[tuple[ScenarioResult, list[Breach]]]]:
        """Requirement → the scenarios that break it, each with the breaches of rules that show this."""
        failures: dict[str, list[tuple[ScenarioResult, list[Breach]]]] = {}
        for result in self.results:
            for id, breaches in breaches_by_requirement(result, self.breaches_of(result)).items():
                failures.setdefault(id, []).append((result, breaches))
        return failures

    def breaches_of(self, result: ScenarioResult) -> list[Breach]:
        """Return the breaches that count for this scheduler."""
        breaches = breaches_of(
            result, saw_everything_at_once=self.saw_everything_at_once, has_priorities=self.has_priorities
        )
        return [proven_breach(breach, result, self.results) for breach in breaches]


def judge(run: Recorded[Scenarios], id: str) -> None:
    """Make one failed check for each scenario that breaks the requirement, or one passing check if no scenario does."""
    run.given(SCHEDULER_WORKS)
    if id == POD_LEVEL_RESOURCES and not run.scene.keeps_pod_resources:
        raise Blocked("the API server drops spec.resources of pods: it lacks PodLevelResources", "circumstances")
    for result, breaches in run.scene.failures_by_requirement.get(id, ()):
        description = f"{_name(result)}: {result.scenario.about or 'the outcome is permitted'}"
        run.holds(description, RuleResult("", description, False, explanation(result, breaches)))
    if id not in run.scene.failures_by_requirement:
        run.holds(f"{len(run.scene.results)} scenarios come to rest where they may", True)


def _uses_pod_level_resources(scenario: Scenario) -> bool:
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


def breaches_by_requirement(result: ScenarioResult, breaches: Sequence[Breach]) -> dict[str, list[Breach]]:
    """Return requirement → the breaches with which this scenario breaks it."""
    breaches_by_id: dict[str, list[Breach]] = {}
    needless = {breach.gang for breach in breaches if breach.rule == "GS-26"}
    for breach in breaches:
        for id in dict.fromkeys(_broken_by(breach, result, needless)):
            breaches_by_id.setdefault(id, []).append(breach)
    if any(result.scenario.expected.victims) and not result.changed and not result.outcome.victims:
        breaches_by_id[PREEMPTION_REQUIREMENT] = [
            Breach("GS-30", "", "nothing is evicted, although that would make room", "SHOULD")
        ]
    return breaches_by_id


def _broken_by(breach: Breach, result: ScenarioResult, needlessly_waiting: Collection[str]) -> list[str]:
    """Return the requirements that a breach breaks. `needlessly_waiting` holds the gangs that wait although they
    fit."""
    checks, is_must, rule_requirement = (
        result.scenario.checks,
        breach.level == "MUST",
        REQUIREMENT_BY_RULE.get((breach.rule, breach.level)),
    )
    if result.instance.has_zero_minimum:
        return [ZERO_MINIMUMS] if is_must else []
    if breach.extra:
        waiting = any(not is_admitted(result.instance, result.outcome, gang) for gang in result.instance.gangs)
        return [] if waiting else [EXTRA_PODS]
    if own_requirements := [id for id in checks if breach.rule in EXCLUSIVE_RULES.get(id, ())]:
        return own_requirements
    if not is_must:
        return [rule_requirement] if rule_requirement else []
    if breach.rule in ("GS-03", "OR-2"):
        return [GATED_PODS]
    if breach.rule in ("GS-30", "GS-31") and _terminated_by_scheduler(breach.gang, result):
        return [REMAINING_PODS]
    if breach.rule in ("GS-26", "GS-28", "OR-1") and not _holds_in_any_accounting(breach, result):
        return [ENDED_PODS]
    if breach.rule == "GS-31" and rule_requirement:  # an earlier placement may have been right
        return [rule_requirement]
    if breach.rule in ("GS-26", "GS-28") and not certainly_fits(result.instance, result.outcome, breach):
        return [SEARCHED_ROOM, *(id for id in checks if id in DOMAIN_PLACEMENT_REQUIREMENTS)]
    if breach.rule == "GS-26":
        placement_requirements = [
            id for id in checks if id in PLACEMENT_REQUIREMENTS or id in DOMAIN_PLACEMENT_REQUIREMENTS
        ]
        waiting_gangs = [
            gang for gang in result.instance.gangs if not is_admitted(result.instance, result.outcome, gang)
        ]
        if any(gang.name not in needlessly_waiting for gang in waiting_gangs):
            return [
                WITHHELD_ROOM,
                *(id for id in checks if id in PLACEMENT_REQUIREMENTS and id not in (rule_requirement, SCALED_GANGS)),
            ]
        return [*placement_requirements, rule_requirement] if rule_requirement else placement_requirements
    other_requirements = [
        id for id in checks if breach.rule in ADDITIONAL_RULES.get(id, ()) and _concerns_gangs_of(id, breach, result)
    ]
    return [*other_requirements, *([rule_requirement] if rule_requirement else [])]


def _concerns_gangs_of(id: str, breach: Breach, result: ScenarioResult) -> bool:
    """Return whether a requirement without its own rule is about the gangs of this breach."""
    instance, outcome = result.instance, result.outcome
    placed_gangs = {gang.name for gang in instance.gangs if is_admitted(instance, outcome, gang)}
    if id == ONE_OF_TWO_GANGS:
        return breach.rule != "OR-1" or len(placed_gangs) != 1
    if id == GATED_PODS:
        return any(group.gated for group in instance.gang(breach.gang).groups)
    if id == PREEMPTION_REQUIREMENT:
        return max(instance.gangs, key=lambda gang: gang.priority).name not in placed_gangs
    if id == WHOLE_REPLICAS and breach.rule == "OR-1":
        return any(gang.name in result.scenario.expected.never for gang in _gangs_with_pods(result) if not gang.base)
    return id != WHOLE_REPLICAS or not instance.gang(breach.gang).base


def _terminated_by_scheduler(name: str, result: ScenarioResult) -> bool:
    """Return whether a gang was below its minimum before any of its pods was evicted, and no pod of this gang or of a
    gang with higher priority was bound. In that case the scheduler preempted nothing, but terminated the gang because
    it had lost a pod."""
    gang = next((gang for gang in result.instance.gangs if gang.name == name), None)
    if gang is None or any(other is gang or other.priority > gang.priority for other in _gangs_with_pods(result)):
        return False
    bound_counts = [survivors(result.instance, SchedulingOutcome(), name, group.name).total() for group in gang.groups]
    return any(bound_counts) and any(
        count < group.minimum for count, group in zip(bound_counts, gang.groups, strict=True)
    )


def _holds_in_any_accounting(breach: Breach, result: ScenarioResult) -> bool:
    """Return whether a breach holds in both ways of counting room. For OR-1, the other way is that terminating pods and
    victims hold no room. For the other rules, it is that finished pods still hold their room unless the scheduler has
    used it."""
    observed = [move.step for move in result.moves]
    state: Literal["terminating", "finished"] = "finished" if breach.rule == "OR-1" else "terminating"
    running = [pod if pod.state == "running" else replace(pod, state=state) for pod in result.instance.running]
    names = {pod.name for pod in running if breach.rule == "OR-1"}
    victims = [step for step in observed if isinstance(step, history.PodDeleted) and step.pod in names]
    instance = replace(result.instance, running=tuple(running))
    steps = [*victims, *(step for step in observed if step not in victims)]
    if (instance, steps) == (result.instance, observed):
        return True
    breaches = history.find_breaches(instance, steps, recreated=result.outcome.recreated)
    return any(other.rule == "OR-1" or (other.rule, other.gang) == (breach.rule, breach.gang) for other in breaches)


def _gangs_with_pods(result: ScenarioResult) -> list[Gang]:
    """Return the gangs that have bound pods."""
    return [gang for gang in result.instance.gangs if any(result.outcome.placed.get(gang.name, {}).values())]


def breaches_of(
    result: ScenarioResult, *, saw_everything_at_once: bool = True, has_priorities: bool = True
) -> list[Breach]:
    """Return the breaches of the rules during a scenario and at its end."""
    steps = [move.step for move in result.moves]
    breaches = history.find_breaches(result.instance, steps, recreated=result.outcome.recreated)
    breaches += [*_stale_nominations(result), *_missed_preferences(result)]
    return counted_breaches(
        breaches, result.instance, saw_everything_at_once=saw_everything_at_once, has_priorities=has_priorities
    )


def proven_breach(breach: Breach, result: ScenarioResult, results: Iterable[ScenarioResult]) -> Breach:
    """Return the breach that is proven, given that the scenarios of all `results` ran in the same queue.

    A pod may have been evicted for a gang of another scenario with a higher priority, if that gang was bound after the
    eviction. That gang may preempt, so GS-30 is not broken. It cannot use the pod's node, so more was evicted than
    needed (GS-32).
    """
    evictions = [move.time for move in result.moves if move.step == history.PodDeleted(breach.victim)]
    if breach.rule != "GS-30" or not evictions:
        return breach
    priority = next(result.instance.priority(pod) for pod in result.instance.running if pod.name == breach.victim)
    for other_result in results:
        gangs = {gang.name: gang.priority for gang in other_result.instance.gangs}
        for move in other_result.moves if other_result.scenario.id != result.scenario.id else ():
            step = move.step
            if (
                isinstance(step, history.PodBound)
                and move.time > evictions[0]
                and gangs.get(step.gang, priority) > priority
            ):
                whom = f"{step.gang} of {other_result.scenario.id}, which cannot use its node"
                return Breach("GS-32", breach.gang, f"{breach.victim} was evicted, perhaps for {whom}", "SHOULD")
    return breach


def explanation(result: ScenarioResult, breaches: Iterable[Breach]) -> str:
    """Return an explanation: the outcome, the breaches, the permitted outcomes, and the YAML that reproduces the
    scenario."""
    lines = [f"seen: {scenarios.notation(result.outcome)}", *(f"breach: {breach}" for breach in breaches)]
    lines += [
        f"permitted: {scenarios.notation(outcome)}" for outcome in nearest_outcomes(result.instance, result.outcome)
    ]
    if result.changed:
        lines.append("this is what came of it after the change that the scenario ends with")
    lines += ["scenario:", scenarios.to_yaml(result.scenario.instance, result.scenario.about)]
    return "\n".join(lines)


def nearest_outcomes(instance: Instance, observed: SchedulingOutcome) -> list[SchedulingOutcome]:
    """Return the permitted outcomes that are most similar to the observed outcome, most similar first. Return none if
    there are too many to compare."""
    distributions = 1
    for gang in instance.gangs:
        for group in gang.groups:
            distributions *= (1 + len(instance.nodes)) ** group.desired
    if distributions > MAX_DISTRIBUTIONS or len(instance.running) > 6:
        return []
    permitted = list(islice(outcomes.permitted_outcomes(instance), MAX_DISTRIBUTIONS))
    return sorted(permitted, key=lambda outcome: _distance(instance, outcome, observed))[:MAX_SHOWN_OUTCOMES]


def _distance(instance: Instance, outcome: SchedulingOutcome, other_outcome: SchedulingOutcome) -> int:
    groups = [(gang.name, group.name) for gang in instance.gangs for group in gang.groups]
    places = {(g, h, node) for g, h in groups for o in (outcome, other_outcome) for node in o.of(g, h)}
    moved_pods = sum(abs(outcome.of(g, h).get(node, 0) - other_outcome.of(g, h).get(node, 0)) for g, h, node in places)
    return moved_pods + len(outcome.evicted ^ other_outcome.evicted)


def _stale_nominations(result: ScenarioResult) -> Iterable[Breach]:
    """Yield a breach for each waiting pod that remains nominated for a node although no pod is evicted or terminating
    (GS-24)."""
    if not result.outcome.evicted and not any(pod.state == "terminating" for pod in result.instance.running):
        for pod, node in sorted(result.nominated.items()):
            yield Breach("GS-24", "", f"{pod} waits and is nominated for {node}")


def _missed_preferences(result: ScenarioResult) -> Iterable[Breach]:
    """Yield a breach if preferred topology constraints could have been met better (OR-9)."""
    if not any(scope.preferred for gang in result.instance.gangs for scope in gang.scopes):
        return
    if not result.scenario.enumerable or result.scenario.expected.recommended is None:
        return
    score = outcomes.score(result.instance, result.outcome)
    best = max(
        (outcomes.score(result.instance, permitted) for permitted in outcomes.permitted_outcomes(result.instance)),
        default=score,
    )
    if score < best:
        yield Breach("OR-9", "", f"preferences are met by {score:.2f}, and could be by {best:.2f}", "SHOULD")


def _name(result: ScenarioResult) -> str:
    return result.scenario.id + (", after its change" if result.changed else "")
