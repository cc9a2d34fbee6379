"""Tests with sets that an earlier version has stored with packDomain. One of them does not name a
ClusterTopologyBinding.

The schema keeps packDomain in stored objects. The webhooks reject sets that add it, so the webhooks are removed while
the sets are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.suite.outcomes.checks import Blocked
from conformance.suite.scenes.api import Object
from conformance.suite.scenes.dry_run import Reply
from conformance.testing.observed import are_absent
from conformance.testing.scene import Exclusive, Recorded, Scene, SceneEnvironment, requirement
from conformance.tests.admission.judging import cluster_topology_binding, is_refused

SETS = "podcliquesets"
UNNAMED_BINDING_SET, NAMED_BINDING_SET = "nameless", "named"
RACK, HOST = {"packDomain": "rack"}, {"packDomain": "host"}
REQUIRED_HOST = {"pack": {"required": "host"}}
TOUCH_KEY = "conformance.grove.io/touched"


class StoredSetsWithPackDomain(Scene):
    """Two sets without replicas, stored with packDomain while the webhooks are removed: `nameless` without the name of
    the ClusterTopologyBinding, and `named` with it. Updates are dry runs. Finally `nameless` is deleted."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        with cluster_topology_binding(env) as binding:
            for name in (UNNAMED_BINDING_SET, NAMED_BINDING_SET):
                env.create(_set_with_pack_domain(env, name, binding))
            env.quiet(1)  # wait until the operator has initialized the new sets
            with env.roles.without_hooks():
                _store(env, UNNAMED_BINDING_SET, {"topologyName": None, **RACK})
                _store(env, NAMED_BINDING_SET, {"topologyName": binding, **RACK})
            self._ask_to_repair(env, binding)
            self._ask_to_migrate(env)
            self._ask_to_touch(env)
            env.delete(SETS, UNNAMED_BINDING_SET)
            env.settle("deleted set is gone", are_absent(SETS, [UNNAMED_BINDING_SET]), 30)

    def _ask_to_repair(self, env: SceneEnvironment, binding: str) -> None:
        """Request to add the missing binding name, both alone and together with other changes."""
        migrated = {"packDomain": None, "pack": {"required": "rack"}}
        constraints: Mapping[str, dict[str, Any]] = {
            "the binding name is added": {"topologyName": binding},
            "the name of no binding is added": {"topologyName": f"no-{binding}"},
            "binding name and another domain": {"topologyName": binding, "packDomain": "zone"},
            "binding name and pack.required": {"topologyName": binding, **migrated},
            "binding name and a preferred domain": {"topologyName": binding, "pack": {"preferred": "host"}},
        }
        self.repair_replies = {
            change: _ask(env, UNNAMED_BINDING_SET, _constraint_patch(env, UNNAMED_BINDING_SET, constraint, HOST))
            for change, constraint in constraints.items()
        }

    def _ask_to_migrate(self, env: SceneEnvironment) -> None:
        """Request to change packDomain to pack.required, and to another domain, in the set that names its binding."""
        migration = {"packDomain": None, "pack": {"required": "rack"}}
        self.migration_reply = _ask(
            env, NAMED_BINDING_SET, _constraint_patch(env, NAMED_BINDING_SET, migration, REQUIRED_HOST)
        )
        constraints: Mapping[str, dict[str, Any]] = {
            "packDomain rack becomes packDomain zone": {"packDomain": "zone"},
            "packDomain rack becomes pack.required zone": {"packDomain": None, "pack": {"required": "zone"}},
        }
        self.other_domains = {
            change: _ask(env, NAMED_BINDING_SET, _constraint_patch(env, NAMED_BINDING_SET, constraint, HOST))
            for change, constraint in constraints.items()
        }
        self.warnings = _ask(env, NAMED_BINDING_SET, {"metadata": {"labels": {TOUCH_KEY: "yes"}}}).warnings

    def _ask_to_touch(self, env: SceneEnvironment) -> None:
        """Request changes outside the spec."""
        finalizers = [*_stored(env, UNNAMED_BINDING_SET)["metadata"].get("finalizers", []), TOUCH_KEY]
        self.touch_replies = {
            "label": _ask(env, UNNAMED_BINDING_SET, {"metadata": {"labels": {TOUCH_KEY: "yes"}}}),
            "finalizer": _ask(env, UNNAMED_BINDING_SET, {"metadata": {"finalizers": finalizers}}),
        }


@requirement("ADM-047")
def test_the_missing_binding_name_can_be_added(run: Recorded[StoredSetsWithPackDomain]) -> None:
    """The update changes nothing else."""
    change = "the binding name is added"
    run.expect(change, "accepted", _verdict(run.scene.repair_replies[change], "accepted"))


@requirement("ADM-067")
def test_no_other_domain_comes_with_repair_or_migration(run: Recorded[StoredSetsWithPackDomain]) -> None:
    """The name of a binding that does not exist is rejected as well. Each update starts from the stored set."""
    for change in ("the name of no binding is added", "binding name and another domain"):
        run.expect(change, "refused", _verdict(run.scene.repair_replies[change], "refused"))
    for change, reply in run.scene.other_domains.items():
        run.expect(change, "refused", _verdict(reply, "refused"))


@requirement("ADM-060")
def test_repair_and_migration_are_two_updates(run: Recorded[StoredSetsWithPackDomain]) -> None:
    """The domain stays the same, so the only possible reason for a rejection is the combination of the two changes."""
    change = "binding name and pack.required"
    run.expect(change, "refused", _verdict(run.scene.repair_replies[change], "refused"))


@requirement("ADM-048")
def test_pack_domain_can_be_migrated(run: Recorded[StoredSetsWithPackDomain]) -> None:
    """The set names its binding."""
    verdict = _verdict(run.scene.migration_reply, "accepted")
    run.expect("packDomain rack becomes pack.required rack", "accepted", verdict)


@requirement("ADM-068")
def test_updates_warn_about_a_stored_pack_domain(run: Recorded[StoredSetsWithPackDomain]) -> None:
    """The update changes only a label."""
    warned = any("packDomain" in warning for warning in run.scene.warnings)
    run.expect("a label is changed with a warning of packDomain", True, warned)


@requirement("ADM-049")
def test_stored_sets_can_be_changed_outside_the_spec(run: Recorded[StoredSetsWithPackDomain]) -> None:
    """A label and a finalizer are added."""
    for change, reply in run.scene.touch_replies.items():
        run.expect(f"a {change} is added", "accepted", _verdict(reply, "accepted"))


@requirement("ADM-064", reaches="deleted set is gone")
def test_stored_sets_can_be_deleted(run: Recorded[StoredSetsWithPackDomain]) -> None:
    """The operator's own finalizer blocks the deletion, and its removal is an update."""


@requirement("ADM-050")
def test_a_preferred_domain_does_not_come_with_the_binding_name(run: Recorded[StoredSetsWithPackDomain]) -> None:
    """The preferred domain is not a part of the repair."""
    change = "binding name and a preferred domain"
    run.expect(change, "refused", _verdict(run.scene.repair_replies[change], "refused"))


def _set_with_pack_domain(env: SceneEnvironment, name: str, binding: str) -> Object:
    """Return a set with constraints in the current form. It has no replicas, because the scene needs only the set
    itself."""
    workload = env.workload("frontend", setName=name, replicas=0)
    template = workload["spec"]["template"]
    template["topologyConstraint"] = {"topologyName": binding, "pack": {"required": "rack"}}
    template["cliques"][0]["topologyConstraint"] = REQUIRED_HOST
    return workload


def _store(env: SceneEnvironment, name: str, constraint: dict[str, Any]) -> None:
    """Store packDomain in a set and in its clique. Raise Blocked if the schema itself rejects such a set."""
    previous_reply = _constraint_patch(env, name, {"pack": None, **constraint}, HOST)
    reply = env.dry_run.ask(env.dry_run.patch(SETS, name, previous_reply))
    if not reply.accepted:
        raise Blocked(f"a set with packDomain cannot be stored even without webhooks: {reply}", "circumstances")
    env.patch(SETS, name, previous_reply)


def _constraint_patch(env: SceneEnvironment, name: str, of_set: Object, of_clique: Object) -> dict[str, Any]:
    """Return the patch that changes the constraint of a stored set and of its only clique."""
    [clique] = _stored(env, name)["spec"]["template"]["cliques"]
    cliques = [{**clique, "topologyConstraint": of_clique}]
    return {"spec": {"template": {"topologyConstraint": of_set, "cliques": cliques}}}


def _stored(env: SceneEnvironment, name: str) -> Object:
    return env.dry_run.ask(env.dry_run.get(SETS, name)).object


def _ask(env: SceneEnvironment, name: str, patch: dict[str, Any]) -> Reply:
    return env.dry_run.ask(env.dry_run.patch(SETS, name, patch))


def _verdict(reply: Reply, expected: str) -> str:
    """Return `expected` if it is the verdict of the reply, or else the reply as text."""
    return expected if (reply.accepted if expected == "accepted" else is_refused(reply)) else str(reply)
