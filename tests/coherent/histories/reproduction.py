"""The manifest and the kubectl commands with which people reproduce a generated history."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.coherent.histories import model

HOLD_READY_ANNOTATION = "conformance.grove.io/hold-ready"
"""The annotation of pods that never become Ready."""
SET = "s"

Versions = dict[str, tuple[int, bool]]
"""The version of each part by name, and whether the version works."""


def clique_of(part: model.Part) -> str:
    """Return the name of a part's clique template: the part's own name, or `pm` for a scaling group `p`."""
    return f"{part.name}m" if part.is_group else part.name


def initial_versions(history: model.GeneratedHistory) -> Versions:
    """Return the versions with which the set is created."""
    return {part.name: (model.FIRST_VERSION, True) for part in history.parts}


def final_versions(history: model.GeneratedHistory, versions: Versions) -> Versions:
    """Return the version of each clique at the end of a history. A version whose pods never become Ready is replaced by
    the last version, and so are all versions if OnDelete may have left pods of old versions."""
    may_keep_old_pods = history.may_keep_old_pods
    return {
        name: (number if works and not may_keep_old_pods else model.LAST_VERSION, True)
        for name, (number, works) in versions.items()
    }


def required_versions(history: model.GeneratedHistory, strategy: str, versions: Versions) -> dict[str, int]:
    """Return the versions, by part, of the parts that RollingRecreate must update even if other parts do not work."""
    if strategy != model.ROLLING or history.replicas > 1 or history.may_keep_old_pods:
        return {}
    return {name: number for name, (number, works) in versions.items() if works}


def final_patch(history: model.GeneratedHistory, versions: Versions) -> dict[str, Any]:
    """Return the patch of the spec with which a history ends."""
    return {
        "updateStrategy": {"type": model.COHERENT},
        "template": {"cliques": cliques(history, final_versions(history, versions))},
    }


def manifest(history: model.GeneratedHistory, versions: Versions | None = None) -> dict[str, Any]:
    """Return the PodCliqueSet of a history."""
    versions = versions or initial_versions(history)
    groups = [
        {
            "name": part.name,
            "cliqueNames": [clique_of(part)],
            "replicas": part.replicas,
            "minAvailable": part.minimum,
            "rollingUpdate": {"maxUnavailable": part.budget},
        }
        for part in history.parts
        if part.is_group
    ]
    template = {"cliques": cliques(history, versions), "terminationDelay": "4h0m0s"}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": SET},
        "spec": {
            "replicas": history.replicas,
            "updateStrategy": {"type": history.strategy},
            "template": template | ({"podCliqueScalingGroups": groups} if groups else {}),
        },
    }


def cliques(history: model.GeneratedHistory, versions: Versions) -> list[dict[str, Any]]:
    """Return the clique templates of a set with these versions."""
    return [_clique(part, *versions[part.name]) for part in history.parts]


def _clique(part: model.Part, version: int, works: bool) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": f"registry.example/{part.name}:{version}",
        "resources": {"requests": {"cpu": "10m"}},
    }
    replicas, minimum = (1, 1) if part.is_group else (part.replicas, part.minimum)
    name = clique_of(part)
    return {
        "name": name,
        **({} if works else {"annotations": {HOLD_READY_ANNOTATION: "yes"}}),
        **({} if part.is_group else {"rollingUpdate": {"maxUnavailable": part.budget}}),
        "spec": {
            "roleName": name,
            "replicas": replicas,
            "minAvailable": minimum,
            "podSpec": {"containers": [container]},
        },
    }


def versions_after(versions: Versions, previous_versions: Versions, action: model.Action) -> tuple[Versions, Versions]:
    """Return the versions after an action, and the versions before the last change."""
    match action:
        case model.Change(parts=parts, version=version, works=works):
            return versions | dict.fromkeys(parts, (version, works)), versions
        case model.Revert():
            return previous_versions, previous_versions
    return versions, previous_versions


def write(folder: Path, history: model.GeneratedHistory, problems: list[str]) -> Path:
    """Write set.yaml, commands.sh and problems.txt into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "set.yaml").write_text(yaml.safe_dump(manifest(history), sort_keys=False), encoding="utf-8")
    (folder / "commands.sh").write_text("\n".join(commands(history)) + "\n", encoding="utf-8")
    (folder / "problems.txt").write_text("\n".join([str(history), "", *problems]) + "\n", encoding="utf-8")
    return folder


def commands(history: model.GeneratedHistory) -> Iterator[str]:
    """Yield the commands to type, with comments that say what to wait for."""
    versions = initial_versions(history)
    previous_versions = versions
    yield "kubectl apply -f set.yaml"
    yield from _wait_comment("every Pod is Ready")
    for action in history.actions:
        new_versions, previous_versions = versions_after(versions, previous_versions, action)
        yield from _command(history, action, new_versions)
        versions = new_versions
    strategy_changes = history.strategy != model.COHERENT or any(
        isinstance(action, model.SwitchStrategy) for action in history.actions
    )
    if strategy_changes or final_versions(history, versions) != versions:
        yield "# Versions that do not work are replaced, and the strategy is Coherent in the end."
        yield _patch(final_patch(history, versions))
    yield from _wait_comment("the update has ended and every Pod is Ready")


def _command(history: model.GeneratedHistory, action: model.Action, versions: Versions) -> Iterator[str]:
    pods = "kubectl get pods -l app.kubernetes.io/part-of=s --sort-by=.metadata.name -o name"
    match action:
        case model.Change() | model.Revert():
            yield _patch({"template": {"cliques": cliques(history, versions)}})
        case model.Scale(part=name, replicas=replicas):
            plural = "podcliquescalinggroups" if history.part(name).is_group else "podcliques"
            yield f"kubectl scale {plural}/{SET}-0-{name} --replicas={replicas}"
        case model.LosePod(number=number):
            yield f"kubectl delete $({pods} | sed -n $((1 + {number} % $({pods} | wc -l)))p)"
        case model.FailNode():
            yield "# A node is lost: delete it with all its Pods, then add it again."
        case model.Restart():
            yield "# The operator is killed (kill -9), and started again."
        case model.SwitchStrategy(strategy=strategy):
            yield _patch({"updateStrategy": {"type": strategy}})
        case model.Proceed(steps=steps):
            yield f"# Wait until podgangmaps/{SET}-0 has changed {steps} times at most: kubectl get pgm -w -o yaml"
        case model.PauseCollector():
            yield "# The garbage collector stands still: kill -STOP the kube-controller-manager, and -CONT 15 s later."
        case model.Replace(pods=pods):
            yield f"# Wait until {pods} Pods more have been created: kubectl get pods -w"
        case model.Settle():
            yield from _wait_comment("the update has ended, unless a version does not work")


def _wait_comment(condition: str) -> Iterator[str]:
    yield f"# Wait until {condition}: kubectl get pcs {SET} -w -o jsonpath='{{.status.updateProgress}}'"


def _patch(spec: Mapping[str, Any]) -> str:
    return f"kubectl patch pcs {SET} --type merge -p '{json.dumps({'spec': spec})}'"
