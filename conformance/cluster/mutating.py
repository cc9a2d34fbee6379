"""Objects that make the API server change what users write or read, under the names of these users: mutating policies
and webhooks, conversion webhooks, and API services.

Which effects are permitted depends on what the rules of an implementation match, not on who created the rules. As
operators, gang schedulers and service meshes do, an implementation may change the sets of users, the objects of Grove,
pods, and the controllers of pods. Nodes, quotas and statuses belong to the cluster and to its users. Selectors and
conditions that narrow a rule are ignored, since they can be widened at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from conformance.grove.fields import at, items, text, texts
from conformance.grove.kinds import PODCLIQUESETS, PODGANGS
from kube.resource import CRDS, PODS

ADMISSION_GROUP, API_SERVICE_GROUP = "admissionregistration.k8s.io", "apiregistration.k8s.io"
POLICIES, WEBHOOKS, API_SERVICES = "mutatingadmissionpolicies", "mutatingwebhookconfigurations", "apiservices"
PLURALS = (POLICIES, WEBHOOKS, CRDS.plural, API_SERVICES)
CONTROLLER_GROUPS = ("apps", "batch")
"""The API groups of Kubernetes whose objects create pods."""
METRICS_SUFFIX = "metrics.k8s.io"
"""The suffix of Kubernetes' metrics API groups, which are served by aggregated API servers."""
GROVE_GROUPS = (PODCLIQUESETS.group, PODGANGS.group)
"""The API groups of Grove."""


def resources() -> list[dict[str, Any]]:
    """Return the resources of these objects in the form of an audit policy."""
    return [
        {"group": ADMISSION_GROUP, "resources": [POLICIES, WEBHOOKS]},
        {"group": CRDS.group, "resources": [CRDS.plural]},
        {"group": API_SERVICE_GROUP, "resources": [API_SERVICES]},
    ]


def forbidden_effect(obj: Mapping[str, Any]) -> str:
    """Return the effect of such an object that no implementation may have, as the end of a sentence; empty if there is
    none."""
    match obj.get("kind"):
        case "MutatingAdmissionPolicy":
            changed_resources = _changed_resources(items(obj, "spec", "matchConstraints", "resourceRules"))
        case "MutatingWebhookConfiguration":
            changed_resources = (
                resource for hook in items(obj, "webhooks") for resource in _changed_resources(items(hook, "rules"))
            )
        case "CustomResourceDefinition":
            group, plural = text(obj, "spec", "group"), text(obj, "spec", "names", "plural")
            converts = text(obj, "spec", "conversion", "strategy") == "Webhook" and group in GROVE_GROUPS
            return f"converts {plural}.{group} by a webhook" if converts else ""
        case "APIService":
            group = text(obj, "spec", "group")
            serves = (
                bool(at(obj, "spec", "service")) and _is_builtin_group(group) and not group.endswith(METRICS_SUFFIX)
            )
            return f"lets another server answer for the group {group or 'v1'!r}" if serves else ""
        case _:
            return ""
    return f"changes {resource}" if (resource := next(changed_resources, "")) else ""


def _changed_resources(rules: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the resources that rules match and that no implementation may change."""
    for rule in rules:
        if not set(texts(rule, "operations")) <= {"DELETE", "CONNECT"}:
            for group in texts(rule, "apiGroups"):
                yield from (
                    _resource_text(group, resource)
                    for resource in texts(rule, "resources")
                    if not _may_change(group, resource)
                )


def _may_change(group: str, resource: str) -> bool:
    if not group:
        return resource == PODS.plural
    if "/" in resource:
        return not _is_builtin_group(group)
    return group in CONTROLLER_GROUPS or group in GROVE_GROUPS or not _is_builtin_group(group)


def _is_builtin_group(group: str) -> bool:
    """Return whether an API group, or a pattern, includes kinds of Kubernetes or of Grove."""
    return "." not in group or group.endswith(".k8s.io") or group in GROVE_GROUPS


def _resource_text(group: str, resource: str) -> str:
    return f"{resource} of the group {group}" if group else resource
