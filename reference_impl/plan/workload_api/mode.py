"""The mode of the back-end: the API that the cluster serves, and deviations from the text of GREP-531."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kube.resource import Resource
from reference_impl.api import workload_api as api

SCHEDULER = "default-scheduler"


class Form(StrEnum):
    """The objects that a PodGang is mapped to. `TREE` requires Kubernetes 1.37 with CompositePodGroups. `FLAT` is all
    that Kubernetes 1.36 can express: a single PodGroup, so that only gangs with one group are supported (WL37-M13)."""

    TREE = "tree"
    FLAT = "flat"

    @property
    def resources(self) -> tuple[Resource, ...]:
        """The resources that the cluster must serve, in the order of creation."""
        if self is Form.TREE:
            return (api.WORKLOADS, api.COMPOSITES, api.POD_GROUPS)
        return (api.FLAT_WORKLOADS, api.FLAT_POD_GROUPS)


class Extras(StrEnum):
    """When pods above a gang's minimum are created: together with all other pods, as GREP-531 specifies, or after the
    minimum is bound (docs/decisions/021-extras-after-the-minimum.md)."""

    INSIDE = "inside"
    AFTER_FLOOR = "after-floor"


class Replacements(StrEnum):
    """Whether the replacement of a lost pod waits until all groups of the gang have their minimum again, as GREP-531
    specifies, or is placed on its own (docs/decisions/023-replacements-alone.md)."""

    TOGETHER = "together"
    ALONE = "alone"


@dataclass(frozen=True)
class Mode:
    """The settings of the back-end."""

    form: Form = Form.TREE
    extras: Extras = Extras.AFTER_FLOOR
    replacements: Replacements = Replacements.ALONE
