"""Mutants of the parameters of claims, and of ComputeDomains on nodes that serve them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mutants.registry import mutant
from mutants.replacement import Original, around, replace
from reference_impl.api.models import CliqueTemplate, PodCliqueSet, ScalingGroupConfig
from reference_impl.plan import mnnvl
from reference_impl.plan.desired import DesiredSet
from reference_impl.scheduler.devices import decisions
from reference_impl.scheduler.devices.allocator import Usage
from reference_impl.scheduler.devices.inventory import Inventory
from reference_impl.scheduler.devices.objects import DeviceId

Manifest = dict[str, Any]


@mutant("gang-scheduler", "allocates claims without their parameters", "DEV-033")
def _parameters_not_allocated() -> None:
    replace(decisions, "_configuration", lambda claim, results, inventory: [])


@mutant("gang-scheduler", "forgets which channels are allocated", "DEV-032")
@around(Usage, "take")
def _channels_allocated_twice(
    original: Original, self: Usage, device_id: DeviceId, inventory: Inventory, count: int = 1
) -> None:
    if device_id[0] != "compute-domain.nvidia.com":
        original(self, device_id, inventory, count)


@mutant("operator", "gives all replicas channels of the first ComputeDomain", "DEV-032")
@around(mnnvl, "with_group_channel")
def _replicas_share_a_domain(
    original: Original,
    spec: Manifest,
    pcs: PodCliqueSet,
    template: CliqueTemplate,
    config: ScalingGroupConfig | None,
    index: int,
) -> Manifest:
    return original(spec, pcs, template, config, 0)


@mutant("operator", "keeps the ComputeDomains of removed replicas", "DEV-034", "RES-073")
@around(DesiredSet, "surplus")
def _removed_domains_kept(original: Original, self: DesiredSet, kind: str, existing: Iterable[Any]) -> Iterator[Any]:
    yield from () if kind == "ComputeDomain" else original(self, kind, existing)


@mutant("operator", "deletes all ComputeDomains of a set with that of a replica", "DEV-034")
@around(DesiredSet, "surplus")
def _remaining_domains_deleted(
    original: Original, self: DesiredSet, kind: str, existing: Iterable[Any]
) -> Iterator[Any]:
    items = list(existing)
    surplus_items = list(original(self, kind, items))
    if kind == "ComputeDomain" and surplus_items:
        surplus_items = [item for item in items if item.metadata.deletion_timestamp is None]
    yield from surplus_items
