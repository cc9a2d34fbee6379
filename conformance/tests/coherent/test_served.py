"""What is served for coherent updates, and what admission says to their fields. Nothing is stored."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from conformance.grove.coherent import served
from conformance.grove.fields import at, items, text, texts
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.scenes.api import Object
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.tests.coherent import sets
from conformance.tests.coherent.sets import COHERENT, ON_DELETE, ROLLING

CRDS = "customresourcedefinitions"
BUDGET = "rollingUpdate.maxUnavailable"
STRATEGIES = (COHERENT, ROLLING, ON_DELETE)


MEMBER = "rollingUpdate of a member"
PATHS = {"clique": f"cliques[0].{BUDGET}", "group": f"[0].{BUDGET}"}
"""The end of the path of each part's budget."""
WRONG: dict[str, tuple[str, dict[str, dict[str, int]], str]] = {
    "maxUnavailable 0 of a clique": (COHERENT, {"clique": {"maxUnavailable": 0}}, f"cliques[0].{BUDGET}"),
    "maxUnavailable -1 of a clique": (COHERENT, {"clique": {"maxUnavailable": -1}}, f"cliques[0].{BUDGET}"),
    "maxUnavailable 0 of a scaling group": (COHERENT, {"group": {"maxUnavailable": 0}}, f"[0].{BUDGET}"),
    MEMBER: (COHERENT, {"member": {"maxUnavailable": 2}}, "cliques[1].rollingUpdate"),
    "a strategy that does not exist": ("Coherently", {}, "updateStrategy.type"),
}
"""What is rejected: strategy, budgets, and the end of the field's path."""


class AskedAboutCoherentUpdates(Scene):
    """The CustomResourceDefinitions, and dry-run requests: sets f3/2 p3/2 with and without maxUnavailable, with fields
    that are wrong, and a PodGangMap with two entries of one key."""

    def play(self, env: SceneEnvironment) -> None:
        crds = env.dry_run.all([env.dry_run.get(CRDS, each) for each in (served.MAPS, served.SETS)])
        self.maps, self.sets = (reply.object for reply in crds)
        self.served = served.read([self.maps, self.sets])
        wanted = {each: _set(env, each) for each in STRATEGIES}
        replies = env.dry_run.all([env.dry_run.create(each) for each in wanted.values()])
        self.unset = dict(zip(STRATEGIES, replies, strict=True))
        low = {
            "clique": [_set(env, each, clique={"maxUnavailable": 1}) for each in (COHERENT, ROLLING)],
            "group": [_set(env, each, group={"maxUnavailable": 1}) for each in (COHERENT, ROLLING)],
        }
        self.low = {part: env.dry_run.all([env.dry_run.create(each) for each in asked]) for part, asked in low.items()}
        members = [_set(env, each, member={"maxUnavailable": 2}) for each in STRATEGIES]
        self.members = env.dry_run.all([env.dry_run.create(each) for each in members])
        asked = {what: _set(env, strategy, **budgets) for what, (strategy, budgets, _) in WRONG.items()}
        replies = env.dry_run.all([env.dry_run.create(each) for each in asked.values()])
        self.wrong = dict(zip(asked, replies, strict=True))
        key = self.served.key or _field(self.maps)
        self.twice, self.once = env.dry_run.all(
            [env.dry_run.create(_map(key, keys)) for keys in (("1", "1"), ("1", "2"))]
        )


def _set(env: SceneEnvironment, strategy: str, **budgets: Mapping[str, Any]) -> Object:
    found = copy.deepcopy(sets.coherent(env, "s", {"f": (3, 2)}, {"p": (3, 2)}, strategy=strategy))
    template = found["spec"]["template"]
    for part, entry in (
        ("clique", template["cliques"][0]),
        ("member", template["cliques"][1]),
        ("group", template["podCliqueScalingGroups"][0]),
    ):
        if part in budgets:
            entry["rollingUpdate"] = dict(budgets[part])
    return found


def _field(crd: Object) -> str:
    """Return the field that should be the key of entries, for a CRD that declares none."""
    schema = at(crd, "spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties", "entries")
    return "epoch" if at(schema, "items", "properties", "epoch") is not None else "name"


def _map(key: str, keys: tuple[str, ...]) -> Object:
    listed = [{key: each, "podCliqueSetGenerationHash": "h"} for each in keys]
    listed = [{**entry, "role": "Tail"} for entry in listed] if key == "epoch" else listed
    spec = {"podCliqueSetReplicaIndex": 0, "entries": listed}
    return {"apiVersion": "grove.io/v1alpha1", "kind": "PodGangMap", "metadata": {"name": "s-0"}, "spec": spec}


@requirement("COHR-001")
def test_maps_are_served(run: Recorded[AskedAboutCoherentUpdates]) -> None:
    """Which fields are required is open."""
    crd = run.scene.maps
    names = (text(crd, "spec", "names", "kind"), text(crd, "spec", "group"), text(crd, "spec", "scope"))
    run.expect("kind, group, scope", ("PodGangMap", "grove.io", "Namespaced"), names)
    run.expect("pgm is a short name", True, "pgm" in texts(crd, "spec", "names", "shortNames"))
    version = next(iter(each for each in items(crd, "spec", "versions") if text(each, "name") == "v1alpha1"), {})
    path = ("schema", "openAPIV3Schema", "properties", "spec", "properties")
    known = {each: bool(at(version, *path, each)) for each in ("entries", "podCliqueSetReplicaIndex")}
    run.expect("fields of the spec", {"entries": True, "podCliqueSetReplicaIndex": True}, known)
    run.expect("the key of entries", True, run.scene.served.key in ("name", "epoch"))


@requirement("COHR-002")
def test_keys_of_entries_are_unique(run: Recorded[AskedAboutCoherentUpdates]) -> None:
    """Where the same map is refused with two different keys, maps of others are, and nothing is shown."""
    if not run.scene.once.accepted:
        reason = f"a PodGangMap with two entries of different keys is refused: {run.scene.once}"
        raise Blocked(reason, "circumstances")
    run.expect("two entries of one key", "refused", "refused" if run.scene.twice.refused else str(run.scene.twice))


@requirement("COHR-003")
def test_templates_have_a_budget(run: Recorded[AskedAboutCoherentUpdates]) -> None:
    """The schema is looked at."""
    run.expect("rollingUpdate.maxUnavailable is in the schema", True, run.scene.served.budget)


@requirement("COHR-004")
def test_a_budget_below_the_minimum_is_refused(run: Recorded[AskedAboutCoherentUpdates]) -> None:
    """Of a clique, and of a scaling group."""
    for part, (reply, _) in run.scene.low.items():
        run.expect(f"{part}: maxUnavailable 1, minAvailable 2", "refused", "refused" if reply.refused else str(reply))


@requirement("COHR-005")
def test_a_budget_of_a_member_is_refused(run: Recorded[AskedAboutCoherentUpdates]) -> None:
    """With all three strategies."""
    refused = {strategy: reply.refused for strategy, reply in zip(STRATEGIES, run.scene.members, strict=True)}
    run.expect("refused", dict.fromkeys(STRATEGIES, True), refused)


@requirement("COHR-103")
def test_rejections_name_the_field(run: Recorded[AskedAboutCoherentUpdates]) -> None:
    """The path is looked for in the message; that the last two are rejected is left to COHR-004 and COHR-005."""
    for what, reply in run.scene.wrong.items():
        if what != MEMBER:
            run.expect(what, "refused", "refused" if reply.refused else str(reply))
    named = {what: (reply, WRONG[what][2]) for what, reply in run.scene.wrong.items()}
    named |= {f"low maxUnavailable of a {part}": (run.scene.low[part][0], PATHS[part]) for part in PATHS}
    for what, (reply, path) in named.items():
        run.expect(f"{what}: the field is named", True, path in reply.message or not reply.refused)


@requirement("COHR-006")
def test_the_default_of_a_coherent_set(run: Recorded[AskedAboutCoherentUpdates]) -> None:
    """The set has minAvailable 2 of the clique f and of the group p. The member pl has no default with any strategy."""
    run.expect("f, pl, p", (2, None, 2), _budgets(run.scene.unset[COHERENT].object))
    accepted = {each: reply.object for each, reply in run.scene.unset.items() if reply.accepted}
    members = {each: member for each, found in accepted.items() if (member := _budgets(found)[1]) is not None}
    run.expect("defaults of pl", {}, members)


@requirement("COHR-007")
def test_defaults_of_other_strategies(run: Recorded[AskedAboutCoherentUpdates]) -> None:
    """With RollingRecreate, 1 and no default are both permitted, for each component. A set that is refused, such as for
    a default of 1 with minAvailable 2, has no default."""
    permitted = {ON_DELETE: (None,), ROLLING: (None, 1)}
    accepted = {strategy: reply for strategy in permitted if (reply := run.scene.unset[strategy]).accepted}
    if not accepted:
        raise Blocked(f"no set without maxUnavailable is accepted: {run.scene.unset[ON_DELETE]}", "circumstances")
    for strategy, reply in accepted.items():
        clique, _, group = _budgets(reply.object)
        wrong = {part: seen for part, seen in (("f", clique), ("p", group)) if seen not in permitted[strategy]}
        run.expect(f"{strategy}: defaults that are not permitted", {}, wrong)


@requirement("COHR-008")
def test_other_strategies_permit_a_low_budget(run: Recorded[AskedAboutCoherentUpdates]) -> None:
    """The merged text refuses it whatever the strategy, but defaults it to 1."""
    replies = {part: str(other) for part, (_, other) in run.scene.low.items()}
    run.expect("maxUnavailable 1, minAvailable 2", dict.fromkeys(replies, "accepted"), replies)


def _budgets(found: Object) -> tuple[object, ...]:
    template = at(found, "spec", "template")
    parts = (at(template, "cliques", 0), at(template, "cliques", 1), at(template, "podCliqueScalingGroups", 0))
    return tuple(at(part, "rollingUpdate", "maxUnavailable") for part in parts)
