"""Tests of the kinds that are served for coherent updates, and of the admission of their fields. Nothing is stored."""

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


MEMBER_BUDGET = "rollingUpdate of a member"
BUDGET_PATHS = {"clique": f"cliques[0].{BUDGET}", "group": f"[0].{BUDGET}"}
"""The ends of the field paths of maxUnavailable for cliques and scaling groups."""
INVALID_BUDGETS: dict[str, tuple[str, dict[str, dict[str, int]], str]] = {
    "maxUnavailable 0 of a clique": (COHERENT, {"clique": {"maxUnavailable": 0}}, f"cliques[0].{BUDGET}"),
    "maxUnavailable -1 of a clique": (COHERENT, {"clique": {"maxUnavailable": -1}}, f"cliques[0].{BUDGET}"),
    "maxUnavailable 0 of a scaling group": (COHERENT, {"group": {"maxUnavailable": 0}}, f"[0].{BUDGET}"),
    MEMBER_BUDGET: (COHERENT, {"member": {"maxUnavailable": 2}}, "cliques[1].rollingUpdate"),
    "a strategy that does not exist": ("Coherently", {}, "updateStrategy.type"),
}
"""The rejected sets: description → strategy, rollingUpdate fields, and the end of the path of the wrong field."""


class AskedAboutCoherentUpdates(Scene):
    """The CustomResourceDefinitions, and dry-run requests: sets f3/2 p3/2 (replicas/minAvailable) with and without
    maxUnavailable, sets with wrong fields, and a PodGangMap with two entries that have the same key."""

    def play(self, env: SceneEnvironment) -> None:
        crds = env.dry_run.all([env.dry_run.get(CRDS, crd_name) for crd_name in (served.MAPS, served.SETS)])
        self.map_replies, self.set_replies = (reply.object for reply in crds)
        self.definitions = served.read([self.map_replies, self.set_replies])
        workloads = [_set(env, strategy) for strategy in STRATEGIES]
        replies = env.dry_run.all([env.dry_run.create(workload) for workload in workloads])
        self.unset_replies = dict(zip(STRATEGIES, replies, strict=True))
        low_budget_sets = {
            "clique": [_set(env, strategy, clique={"maxUnavailable": 1}) for strategy in (COHERENT, ROLLING)],
            "group": [_set(env, strategy, group={"maxUnavailable": 1}) for strategy in (COHERENT, ROLLING)],
        }
        self.low_budget_replies = {
            part: env.dry_run.all([env.dry_run.create(workload) for workload in part_sets])
            for part, part_sets in low_budget_sets.items()
        }
        member_sets = [_set(env, strategy, member={"maxUnavailable": 2}) for strategy in STRATEGIES]
        self.member_replies = env.dry_run.all([env.dry_run.create(workload) for workload in member_sets])
        invalid_sets = [_set(env, strategy, **budgets) for strategy, budgets, _ in INVALID_BUDGETS.values()]
        replies = env.dry_run.all([env.dry_run.create(workload) for workload in invalid_sets])
        self.invalid_replies = dict(zip(INVALID_BUDGETS, replies, strict=True))
        key = self.definitions.key or _field(self.map_replies)
        self.repeated_reply, self.two_keys_reply = env.dry_run.all(
            [env.dry_run.create(_map(key, keys)) for keys in (("1", "1"), ("1", "2"))]
        )


def _set(env: SceneEnvironment, strategy: str, **budgets: Mapping[str, Any]) -> Object:
    workload = copy.deepcopy(sets.set_manifest(env, "s", {"f": (3, 2)}, {"p": (3, 2)}, strategy=strategy))
    template = workload["spec"]["template"]
    for part, entry in (
        ("clique", template["cliques"][0]),
        ("member", template["cliques"][1]),
        ("group", template["podCliqueScalingGroups"][0]),
    ):
        if part in budgets:
            entry["rollingUpdate"] = dict(budgets[part])
    return workload


def _field(crd: Object) -> str:
    """Return the field that should be the key of entries, for a CRD that does not declare a key."""
    schema = at(crd, "spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties", "entries")
    return "epoch" if at(schema, "items", "properties", "epoch") is not None else "name"


def _map(key: str, keys: tuple[str, ...]) -> Object:
    entries = [{key: value, "podCliqueSetGenerationHash": "h"} for value in keys]
    entries = [{**entry, "role": "Tail"} for entry in entries] if key == "epoch" else entries
    spec = {"podCliqueSetReplicaIndex": 0, "entries": entries}
    return {"apiVersion": "grove.io/v1alpha1", "kind": "PodGangMap", "metadata": {"name": "s-0"}, "spec": spec}


@requirement("COHR-001")
def test_maps_are_served(run: Recorded[AskedAboutCoherentUpdates]) -> None:
    """It is not specified which fields are required."""
    crd = run.scene.map_replies
    names = (text(crd, "spec", "names", "kind"), text(crd, "spec", "group"), text(crd, "spec", "scope"))
    run.expect("kind, group, scope", ("PodGangMap", "grove.io", "Namespaced"), names)
    run.expect("pgm is a short name", True, "pgm" in texts(crd, "spec", "names", "shortNames"))
    versions = {text(version, "name"): version for version in items(crd, "spec", "versions")}
    path = ("schema", "openAPIV3Schema", "properties", "spec", "properties")
    fields = ("entries", "podCliqueSetReplicaIndex")
    present = {field: bool(at(versions.get("v1alpha1"), *path, field)) for field in fields}
    run.expect("fields of the spec", {"entries": True, "podCliqueSetReplicaIndex": True}, present)
    run.expect("the key of entries", True, run.scene.definitions.key in ("name", "epoch"))


@requirement("COHR-002")
def test_keys_of_entries_are_unique(run: Recorded[AskedAboutCoherentUpdates]) -> None:
    """If a map with two different keys is rejected as well, the API server rejects every map from a user, so the test
    is blocked."""
    if not run.scene.two_keys_reply.accepted:
        reason = f"a PodGangMap with two entries of different keys is refused: {run.scene.two_keys_reply}"
        raise Blocked(reason, "circumstances")
    run.expect(
        "two entries of one key",
        "refused",
        "refused" if run.scene.repeated_reply.refused else str(run.scene.repeated_reply),
    )


@requirement("COHR-003")
def test_templates_have_a_budget(run: Recorded[AskedAboutCoherentUpdates]) -> None:
    """The field is read from the schema."""
    run.expect("rollingUpdate.maxUnavailable is in the schema", True, run.scene.definitions.budget)


@requirement("COHR-004")
def test_a_budget_below_the_minimum_is_refused(run: Recorded[AskedAboutCoherentUpdates]) -> None:
    """This is judged for a clique and for a scaling group."""
    for part, (reply, _) in run.scene.low_budget_replies.items():
        run.expect(f"{part}: maxUnavailable 1, minAvailable 2", "refused", "refused" if reply.refused else str(reply))


@requirement("COHR-005")
def test_a_budget_of_a_member_is_refused(run: Recorded[AskedAboutCoherentUpdates]) -> None:
    """This is judged for all three strategies."""
    refused = {strategy: reply.refused for strategy, reply in zip(STRATEGIES, run.scene.member_replies, strict=True)}
    run.expect("refused", dict.fromkeys(STRATEGIES, True), refused)


@requirement("COHR-103")
def test_rejections_name_the_field(run: Recorded[AskedAboutCoherentUpdates]) -> None:
    """The path must be in the message. COHR-004 and COHR-005 cover whether a low maxUnavailable, or a maxUnavailable of
    a member, is rejected."""
    for title, reply in run.scene.invalid_replies.items():
        if title != MEMBER_BUDGET:
            run.expect(title, "refused", "refused" if reply.refused else str(reply))
    named = {title: (reply, INVALID_BUDGETS[title][2]) for title, reply in run.scene.invalid_replies.items()}
    named |= {
        f"low maxUnavailable of a {part}": (run.scene.low_budget_replies[part][0], BUDGET_PATHS[part])
        for part in BUDGET_PATHS
    }
    for title, (reply, path) in named.items():
        run.expect(f"{title}: the field is named", True, path in reply.message or not reply.refused)


@requirement("COHR-006")
def test_the_default_of_a_coherent_set(run: Recorded[AskedAboutCoherentUpdates]) -> None:
    """minAvailable is 2 for the clique f and the group p. The member pl has no default with any strategy."""
    run.expect("f, pl, p", (2, None, 2), _budgets(run.scene.unset_replies[COHERENT].object))
    accepted = {strategy: reply.object for strategy, reply in run.scene.unset_replies.items() if reply.accepted}
    members = {strategy: member for strategy, obj in accepted.items() if (member := _budgets(obj)[1]) is not None}
    run.expect("defaults of pl", {}, members)


@requirement("COHR-007")
def test_defaults_of_other_strategies(run: Recorded[AskedAboutCoherentUpdates]) -> None:
    """With RollingRecreate, any component may have the default 1 or no default. A set that is rejected, for example
    because a default of 1 is below minAvailable 2, has no default."""
    permitted = {ON_DELETE: (None,), ROLLING: (None, 1)}
    accepted = {strategy: reply for strategy in permitted if (reply := run.scene.unset_replies[strategy]).accepted}
    if not accepted:
        raise Blocked(
            f"no set without maxUnavailable is accepted: {run.scene.unset_replies[ON_DELETE]}", "circumstances"
        )
    for strategy, reply in accepted.items():
        clique, _, group = _budgets(reply.object)
        violations = {part: value for part, value in (("f", clique), ("p", group)) if value not in permitted[strategy]}
        run.expect(f"{strategy}: defaults that are not permitted", {}, violations)


@requirement("COHR-008")
def test_other_strategies_permit_a_low_budget(run: Recorded[AskedAboutCoherentUpdates]) -> None:
    """The merged text rejects such a value with any strategy, but uses 1 as the default."""
    replies = {part: str(other) for part, (_, other) in run.scene.low_budget_replies.items()}
    run.expect("maxUnavailable 1, minAvailable 2", dict.fromkeys(replies, "accepted"), replies)


def _budgets(obj: Object) -> tuple[object, ...]:
    template = at(obj, "spec", "template")
    parts = (at(template, "cliques", 0), at(template, "cliques", 1), at(template, "podCliqueScalingGroups", 0))
    return tuple(at(part, "rollingUpdate", "maxUnavailable") for part in parts)
