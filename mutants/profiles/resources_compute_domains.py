"""Mutants of ComputeDomains and of the channels that pods claim from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.client import Client
from mutants.profiles.resources import Manifest, changed
from mutants.registry import mutant
from mutants.replacement import Original, alter, around, on_result_of, replace
from reference_impl import cli
from reference_impl.api.models import CliqueTemplate, PodCliqueSet, ScalingGroupConfig
from reference_impl.control import features
from reference_impl.control.computedomain import DomainReconciler
from reference_impl.plan import (
    labels,
    mnnvl,
)
from reference_impl.plan.lines import Line


@mutant("operator", "omits the replica label of ComputeDomains", "RES-070")
def _domain_unlabelled() -> None:
    changed(mnnvl, "compute_domain", lambda m: m["metadata"]["labels"].pop(labels.REPLICA_INDEX))


def _ends(complaint_of: Callable[[str], str]) -> None:
    """Pass the operator's error message about missing features of the cluster through `complaint_of`."""

    async def missing_api(client: Client, requested: features.Features, line: Line) -> str:
        return complaint_of(await features.missing_api(client, requested, line))

    replace(cli, "missing_api", missing_api)


@mutant("operator", "waits for the CRD of ComputeDomains", "RES-120")
def _missing_domains_awaited() -> None:
    _ends(lambda complaint: "" if "computedomains" in complaint else complaint)


@mutant("operator", "exits with code 0 without the CRD of ComputeDomains", "RES-120")
def _missing_domains_no_error() -> None:
    def end(complaint: str) -> str:
        if "computedomains" in complaint:
            raise SystemExit(0)
        return complaint

    _ends(end)


@mutant("operator", "uses the set's MNNVL group for cliques whose scaling group says none", "RES-071")
def _none_overruled() -> None:
    original = mnnvl.group_of
    replace(mnnvl, "group_of", lambda pcs, template, config: original(pcs, template, None))


@mutant("operator", "passes channels to containers without GPUs, too", "RES-099")
@around(mnnvl, "with_channel")
def _channels_for_all(original: Original, spec: Manifest, template_name: str) -> Manifest:
    result = original(spec, template_name)
    claim = {"resources": {"claims": [{"name": mnnvl.CLAIM}]}}
    return {**result, "containers": [{**claim, **container} for container in result["containers"]]}


@mutant("operator", "claims channels that no container uses", "RES-072")
@around(mnnvl, "with_channel")
def _channels_for_none(original: Original, spec: Manifest, template_name: str) -> Manifest:
    return {**spec, "resourceClaims": original(spec, template_name)["resourceClaims"]}


@mutant("operator", "lets no init container use a channel", "RES-099", name="init-channels-missing")
@on_result_of(mnnvl, "with_channel")
def init_containers_without_channels(result: Manifest, spec: Manifest, *_: Any) -> Manifest:
    """Give channels to main containers only, not to init containers."""
    return {**result, "initContainers": spec["initContainers"]} if spec.get("initContainers") else result


@mutant("operator", "asks for a number of nodes in ComputeDomains", "RES-099")
def domain_sized() -> None:
    """Request a number of nodes in ComputeDomains."""
    alter(mnnvl, "compute_domain", lambda manifest, *_: {**manifest, "spec": {**manifest["spec"], "numNodes": 2}})


@mutant("operator", "never removes the finalizer of a ComputeDomain", "RES-073", "RES-074", "DEV-034")
def _domain_held() -> None:
    replace(DomainReconciler, "_is_needed", lambda self, key: True)


@mutant("operator", "deletes ComputeDomains that have the name of an earlier version", "RES-118")
def _former_domains_removed() -> None:
    replace(mnnvl, "former_domains", lambda pcs: [])


@mutant("operator", "gives sets with the annotation auto-mnnvl a ComputeDomain", "RES-117")
@around(mnnvl, "group_of")
def _former_annotation_applies(
    original: Original, pcs: PodCliqueSet, template: CliqueTemplate, config: ScalingGroupConfig | None
) -> str:
    enabled = (pcs.metadata.annotations or {}).get("grove.io/auto-mnnvl") == "enabled"
    gpus = any(map(mnnvl._has_gpu, mnnvl._containers(template.spec.pod_spec)))
    return "auto" if enabled and gpus else original(pcs, template, config)
