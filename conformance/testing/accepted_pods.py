"""The pods that the API server would store for clique templates, with its defaults and the changes of admission
plugins. The pods are created as dry runs, so nothing is stored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformance.grove.fields import Document, at
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.scenes.dry_run import Reply, Request
from conformance.testing.scene import SceneEnvironment

Object = dict[str, Any]
_OPENAPI = "/openapi/v3/api/v1"
_PATH_STEP = re.compile(r"[^.\[\]]+")
_MAX_ROUNDS = 8


@dataclass(frozen=True)
class AcceptedPods:
    """The API server's replies, keyed by the name of the clique template."""

    replies: Mapping[str, Reply]

    def spec(self, clique: str) -> Mapping[str, Any]:
        """Return the spec of a clique's pod. Raises Blocked if the API server rejects the pod."""
        reply = self.replies[clique]
        if not reply.accepted:
            raise Blocked(f"the API server refuses a pod of template {clique}: {reply}", "circumstances")
        spec: Mapping[str, Any] = reply.object["spec"]
        return spec


def request_pods(env: SceneEnvironment, workload: Object) -> AcceptedPods:
    """Create one pod for each clique template of a PodCliqueSet, as a dry run."""
    cliques = workload["spec"]["template"]["cliques"]
    replies = env.dry_run.all([env.dry_run.create(_pod(env, clique)) for clique in cliques])
    return AcceptedPods({clique["name"]: reply for clique, reply in zip(cliques, replies, strict=True)})


def remove_rejected_fields(env: SceneEnvironment, workload: Object) -> list[str]:
    """Remove from the clique templates the fields that the API server rejects in pods, and remove the cliques whose
    pods it rejects whatever their fields. Return what was removed; for a clique, with the API server's reason. A later
    version of Kubernetes may restrict the values of fields that are new today."""
    removed = []
    template = workload["spec"]["template"]
    for _ in range(_MAX_ROUNDS):
        replies = request_pods(env, workload).replies
        for clique in list(template["cliques"]):
            reply = replies[clique["name"]]
            if reply.accepted:
                continue
            spec = clique["spec"]
            rejected_paths = [error.raw_path for error in reply.errors if _clear_field(spec["podSpec"], error.raw_path)]
            spec["podSpec"] = _without_none(spec["podSpec"])
            removed += [f"{clique['name']}: {path}" for path in rejected_paths] or [f"{clique['name']}: {reply}"]
            if not rejected_paths:
                template["cliques"].remove(clique)
        if all(reply.accepted for reply in replies.values()):
            break
    return removed


def openapi_schemas(env: SceneEnvironment) -> Mapping[str, Any]:
    """Return the core/v1 types that the API server serves, by name. Raises Blocked if it serves none."""
    reply = env.dry_run.ask(Request("GET", _OPENAPI, dry_run=False))
    schemas = at(reply.object, "components", "schemas")
    if not isinstance(schemas, Mapping):
        raise Blocked(f"the API server does not serve {_OPENAPI}: {reply}", "circumstances")
    return schemas


def _pod(env: SceneEnvironment, clique: Document) -> Object:
    metadata = {key: clique[key] for key in ("labels", "annotations") if key in clique}
    spec = {**clique["spec"]["podSpec"], "schedulerName": env.implementation.scheduler_name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": clique["name"], **metadata}, "spec": spec}


def _clear_field(pod_spec: Object, path: str) -> bool:
    """Set the field at this path to None, or the innermost existing field of the path. Return whether a field within
    the spec was found."""
    parent: Any = None
    value: Any = {"spec": pod_spec}
    steps: list[str | int] = []
    for word in _PATH_STEP.findall(path):
        step = int(word) if word.isdigit() else word
        if not isinstance(value, dict | list) or at(value, step) is None:
            break
        parent, value = value, value[step]
        steps.append(step)
    if len(steps) < 2:
        return False
    parent[steps[-1]] = None
    return True


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value if item is not None] if isinstance(value, list) else value
