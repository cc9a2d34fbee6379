"""Variants of secondary resources, and variants in which PodCliques and scaling groups keep changes by other
clients."""

from __future__ import annotations

from typing import Any

from kube.objects import Key
from mutants.profiles.resources import autoscaler_misnamed, init_containers_without_claims, pods_without_labels
from mutants.profiles.resources_compute_domains import domain_sized, init_containers_without_channels
from mutants.registry import variant
from mutants.replacement import Original, around, on_result_of
from reference_impl.api.models import PodCliqueScalingGroup, ScalingGroupConfig
from reference_impl.control.computedomain import DomainReconciler
from reference_impl.plan import claims, mnnvl, secondary_resources, template_drift
from reference_impl.plan.children import Manifest

DELAY_SECONDS = 1.0
"""Seconds for which a deleted ComputeDomain is kept, in the variant that releases it late."""


@variant("operator", "owns the ServiceAccount of a set without being its controller", "RES-003")
@on_result_of(secondary_resources, "service_account")
def _account_owned(manifest: Manifest, *_: Any) -> Manifest:
    metadata = manifest["metadata"]
    owners = [{**owner, "controller": False} for owner in metadata["ownerReferences"]]
    return {**manifest, "metadata": {**metadata, "ownerReferences": owners}}


@variant(
    "operator",
    "gives autoscalers other names than their targets",
    "RES-030",
    "RES-031",
    "RES-033",
    "RES-054",
    exempt=("RES-096",),
)
def _autoscalers_renamed() -> None:
    autoscaler_misnamed()


@variant("operator", "keeps the labels of a template to PodCliques", *("CORE-003", "RES-023"), exempt=("RES-119",))
def _pods_without_template_labels() -> None:
    pods_without_labels()


@variant("operator", "keeps the order that a scaling group has of its cliques", "RES-027")
@on_result_of(template_drift, "group_patch")
def _members_in_any_order(patch: Manifest, config: ScalingGroupConfig, current: PodCliqueScalingGroup) -> Manifest:
    spec = patch.get("spec", {})
    if set(current.spec.clique_names) != set(config.clique_names):
        return patch
    remaining = {key: value for key, value in spec.items() if key != "cliqueNames"}
    return {"spec": remaining} if remaining else {}


@variant("operator", "passes claims to main containers only", "RES-043", exempt=("RES-098",))
def _claims_for_main_containers() -> None:
    init_containers_without_claims()


@variant("operator", "passes claims to the first container of a pod only", "RES-043", "RES-044", exempt=("RES-098",))
@on_result_of(claims, "with_claims")
def _claims_for_first_containers(result: Manifest, spec: Manifest, _: Any) -> Manifest:
    first, *_ = result["containers"]
    _, *rest = spec["containers"]
    init_containers = {"initContainers": spec["initContainers"]} if "initContainers" in spec else {}
    return {**result, **init_containers, "containers": [first, *rest]}


@variant("operator", "asks for a number of nodes in ComputeDomains", *("RES-070", "DEV-032"), exempt=("RES-099",))
def _nodes_counted() -> None:
    domain_sized()


@variant(
    "operator",
    "lets main containers use the channels of ComputeDomains, and no init containers",
    "RES-072",
    exempt=("RES-099",),
)
def _channels_for_main_containers() -> None:
    init_containers_without_channels()


@variant(
    "operator",
    "names the template of a ComputeDomain in spec.channel.resourceClaimTemplateName, as GREP-417 has it",
    *("RES-070", "DEV-032", "DEV-034"),
)
@on_result_of(mnnvl, "compute_domain")
def _channel_as_proposed(manifest: Manifest, *_: Any) -> Manifest:
    template = manifest["spec"]["channel"]["resourceClaimTemplate"]["name"]
    return {**manifest, "spec": {**manifest["spec"], "channel": {"resourceClaimTemplateName": template}}}


@variant(
    "operator", "keeps a deleted ComputeDomain for a second before it lets it go", *("DEV-034", "RES-073", "RES-074")
)
@around(DomainReconciler, "reconcile", memory=set)
async def _domains_released_late(
    original: Original, released_uids: set[str], self: DomainReconciler, key: Key
) -> float | None:
    domain = self._cache.domains.get(*key)
    if domain is None or domain.metadata.deletion_timestamp is None or domain.metadata.uid in released_uids:
        return await original(self, key)
    released_uids.add(domain.metadata.uid)
    return DELAY_SECONDS
