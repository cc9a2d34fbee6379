"""The expected secondary resources of a set: ServiceAccount, Role, RoleBinding and token Secret for its init
containers, and autoscalers (docs/spec/objects.md, section 2.3, and docs/spec/statuses.md, section 8). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from conformance.grove import labels, names, template
from conformance.grove.fields import Document, at, items, number
from conformance.grove.labels import ComponentLabel
from conformance.grove.template import SetTemplate

OWNER = "PodCliqueSet"
PERMISSIONS = [f"{verb} {resource}" for verb in ("get", "list", "watch") for resource in ("pods", "pods/status")]
"""The exact permissions of the Role, in the format of `role_rules.allowed` (OBJ-242)."""


@dataclass(frozen=True)
class SecondaryResource:
    """A secondary resource. `resource` is the plural of its kind; `labels` are the labels that it must have; it may
    have more (OBJ-201 … OBJ-203). The set is its controller (OBJ-217, OBJ-218)."""

    resource: str
    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Autoscaler(SecondaryResource):
    """A HorizontalPodAutoscaler (OBJ-810, OBJ-811)."""

    target: tuple[str, str]
    """Kind and name of the scale target."""
    minimum: int | None
    """minReplicas; None if the configuration does not set it."""
    maximum: int
    metrics: list[Document]
    """The metrics; empty if the API server chooses them."""


def _labels(set_name: str, component: str, name: str) -> dict[str, str]:
    return {
        labels.MANAGED_BY: labels.OPERATOR,
        labels.PART_OF: set_name,
        labels.COMPONENT: component,
        labels.NAME: name.replace(":", "-"),  # a label value has no colons
    }


def secondary_resources(workload: Document) -> list[SecondaryResource]:
    """Return the four objects that each set has once, independent of its replicas (OBJ-108 … OBJ-110)."""
    set_name = template.read(workload).name
    return [
        SecondaryResource(resource, name, _labels(set_name, component, name))
        for resource, name, component in (
            ("serviceaccounts", names.service_account(set_name), ComponentLabel.SERVICE_ACCOUNT),
            ("roles", names.role(set_name), ComponentLabel.ROLE),
            ("rolebindings", names.role(set_name), ComponentLabel.ROLE_BINDING),
            ("secrets", names.token_secret(set_name), ComponentLabel.TOKEN),
        )
    ]


def autoscalers(workload: Document) -> dict[str, Autoscaler]:
    """Return the autoscalers by name, which is the name of the target (OBJ-111)."""
    return {autoscaler.name: autoscaler for autoscaler in _autoscalers(template.read(workload))}


def _autoscalers(set_template: SetTemplate) -> Iterator[Autoscaler]:
    for i in range(set_template.replicas):
        for clique in set_template.standalone:
            scale, name = at(clique.entry, "spec", "autoScalingConfig"), names.clique(set_template.name, i, clique.name)
            if scale is not None:
                yield _autoscaler(set_template, "PodClique", name, scale)
        for group in set_template.groups:
            scale, name = at(group.entry, "scaleConfig"), names.scaling_group(set_template.name, i, group.name)
            if scale is not None:
                yield _autoscaler(set_template, "PodCliqueScalingGroup", name, scale)


def _autoscaler(set_template: SetTemplate, kind: str, name: str, scale: object) -> Autoscaler:
    return Autoscaler(
        resource="horizontalpodautoscalers",
        name=name,
        labels=_labels(set_template.name, ComponentLabel.AUTOSCALER, name),
        target=(kind, name),
        minimum=number(scale, "minReplicas"),
        maximum=number(scale, "maxReplicas") or 0,
        metrics=items(scale, "metrics"),
    )
