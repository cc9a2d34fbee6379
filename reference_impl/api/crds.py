"""The CustomResourceDefinitions of the six kinds, generated from the models (docs/spec/api.md, section 1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import orjson
import yaml

from kube.client import Client
from kube.resource import Resource
from reference_impl.api import models
from reference_impl.api.schema import Schema, structural

FOLDER = Path(__file__).resolve().parent.parent / "crds"

_DOCUMENTS = ("api/v1", "apis/autoscaling/v2", "apis/resource.k8s.io/v1")


def _column(name: str, path: str, kind: str = "integer", priority: int = 0) -> dict[str, Any]:
    column: dict[str, Any] = {"name": name, "type": kind, "jsonPath": path}
    return {**column, "priority": priority} if priority else column


_AGE = _column("Age", ".metadata.creationTimestamp", "date")
_BREACHED = _column("MinBreached", '.status.conditions[?(@.type=="MinAvailableBreached")].status', "string", 1)

_UPDATE = _column("Update", '.status.conditions[?(@.type=="UpdateInProgress")].reason', "string", 1)
"""The state of the update in progress (GM-111)."""


def _progress(cliques: str, groups: str | None) -> list[dict[str, Any]]:
    columns = [
        _column(f"{cliques}-Updated", ".status.updateProgress.updatedPodCliquesCount"),
        _column(f"{cliques}-Total", ".status.updateProgress.totalPodCliquesCount"),
    ]
    if groups:
        columns += [
            _column(f"{groups}-Updated", ".status.updateProgress.updatedPodCliqueScalingGroupsCount"),
            _column(f"{groups}-Total", ".status.updateProgress.totalPodCliqueScalingGroupsCount"),
        ]
    return columns


@dataclass(frozen=True)
class _Definition:
    resource: Resource
    model: type[msgspec.Struct]
    short_name: str
    columns: list[dict[str, Any]]
    scale_selector: str | None = None
    rules: list[dict[str, Any]] = field(default_factory=list)
    status: bool = True


def _new_only(path: str, rule: str) -> dict[str, Any]:
    """Return a rule that allows `packDomain` on objects that already have it and rejects it on new objects (SCH-10 to
    SCH-12)."""
    return {
        "rule": f"oldSelf.hasValue() || {rule}",
        "optionalOldSelf": True,
        "message": "packDomain is deprecated and cannot be used on new workloads; use pack.required",
        "reason": "FieldValueForbidden",
        "fieldPath": path,
    }


_DEFINITIONS = (
    _Definition(
        models.PODCLIQUESETS,
        models.PodCliqueSet,
        "pcs",
        [
            _column("Replicas", ".spec.replicas"),
            _column("Available", ".status.availableReplicas"),
            _column("Updated", ".status.updatedReplicas"),
            *_progress("PCLQs", "PCSGs"),
            _UPDATE,
            _AGE,
        ],
        scale_selector=".status.hpaPodSelector",
        rules=[
            _new_only(
                ".spec.template.topologyConstraint.packDomain",
                "!has(self.spec.template.topologyConstraint) || !has(self.spec.template.topologyConstraint.packDomain)",
            ),
            _new_only(
                ".spec.template.cliques",
                "self.spec.template.cliques.all(c, "
                "!has(c.topologyConstraint) || !has(c.topologyConstraint.packDomain))",
            ),
            _new_only(
                ".spec.template.podCliqueScalingGroups",
                "!has(self.spec.template.podCliqueScalingGroups) || self.spec.template.podCliqueScalingGroups.all(g, "
                "!has(g.topologyConstraint) || !has(g.topologyConstraint.packDomain))",
            ),
        ],
    ),
    _Definition(
        models.PODCLIQUES,
        models.PodClique,
        "pclq",
        [
            _column("MinAvail", ".spec.minAvailable"),
            _column("Replicas", ".spec.replicas"),
            _column("Ready", ".status.readyReplicas"),
            _column("Scheduled", ".status.scheduledReplicas"),
            _column("Updated", ".status.updatedReplicas"),
            _column("Gated", ".status.scheduleGatedReplicas", priority=1),
            _BREACHED,
            _AGE,
        ],
        scale_selector=".status.hpaPodSelector",
    ),
    _Definition(
        models.SCALING_GROUPS,
        models.PodCliqueScalingGroup,
        "pcsg",
        [
            _column("MinAvail", ".spec.minAvailable"),
            _column("Replicas", ".spec.replicas"),
            _column("Available", ".status.availableReplicas"),
            _column("Scheduled", ".status.scheduledReplicas"),
            _column("Updated", ".status.updatedReplicas"),
            *_progress("PCLQs", None),
            _BREACHED,
            _AGE,
        ],
        scale_selector=".status.selector",
    ),
    _Definition(
        models.TOPOLOGY_BINDINGS,
        models.ClusterTopologyBinding,
        "ct",
        [_column("Domains", ".spec.levels[*].domain", "string"), _AGE],
    ),
    _Definition(
        models.PODGANGMAPS,
        models.PodGangMap,
        "pgm",
        [_column("Replica", ".spec.podCliqueSetReplicaIndex"), _AGE],
        status=False,
    ),
    _Definition(models.PODGANGS, models.PodGang, "pg", [_column("Phase", ".status.phase", "string"), _AGE]),
)


async def openapi(client: Client) -> dict[str, Schema]:
    """Return the running API server's schemas that our kinds embed, by name."""
    schemas: dict[str, Schema] = {}
    for document in _DOCUMENTS:
        schemas |= orjson.loads(await client.request("GET", f"/openapi/v3/{document}"))["components"]["schemas"]
    return schemas


def definitions(schemas: dict[str, Schema]) -> list[dict[str, Any]]:
    """Return the six CustomResourceDefinitions, built with the API server's schemas."""
    return [_manifest(definition, schemas) for definition in _DEFINITIONS]


def _manifest(definition: _Definition, schemas: dict[str, Schema]) -> dict[str, Any]:
    resource = definition.resource
    schema = structural(definition.model, schemas)
    if definition.rules:
        schema["x-kubernetes-validations"] = definition.rules
    subresources: dict[str, Any] = {"status": {}} if definition.status else {}
    if definition.scale_selector:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": definition.scale_selector,
        }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "shortNames": [definition.short_name],
            },
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    **({"subresources": subresources} if subresources else {}),
                    "additionalPrinterColumns": definition.columns,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def write(manifests: list[dict[str, Any]], folder: Path = FOLDER) -> list[Path]:
    """Write one YAML file for each kind and return the paths of the files."""
    folder.mkdir(exist_ok=True)
    paths = []
    for manifest in manifests:
        path = folder / f"{manifest['metadata']['name']}.yaml"
        head = "# Generated by `make crds` from reference_impl/api/models.py; do not edit.\n"
        path.write_text(head + yaml.dump(manifest, sort_keys=True, Dumper=yaml.CSafeDumper, width=120))
        paths.append(path)
    return paths
