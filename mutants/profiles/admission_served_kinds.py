"""Mutants of the served CRDs: the operator breaks its own CRDs when it starts."""

from __future__ import annotations

from typing import Any

from kube.client import JSON_PATCH, Client
from kube.resource import Resource
from mutants.registry import mutant
from mutants.replacement import replace
from reference_impl.control.operator import Operator

CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
SCHEMA = "/spec/versions/0/schema/openAPIV3Schema/properties"


def spoil(crd: str, *operations: dict[str, Any]) -> None:
    """Apply a JSON patch to a CRD before the operator starts working."""
    make, run = Operator.__init__, Operator.run
    clients: list[Client] = []

    def init(self: Operator, client: Client, **settings: Any) -> None:
        clients.append(client)
        make(self, client, **settings)

    async def spoil_and_run(self: Operator, *arguments: Any) -> None:
        await clients[0].patch(CRDS, None, crd, list(operations), content_type=JSON_PATCH)
        await run(self, *arguments)

    replace(Operator, "__init__", init)
    replace(Operator, "run", spoil_and_run)


@mutant("operator", "serves scaling groups without their short name", "CRD-001")
def _short_name_missing() -> None:
    spoil("podcliquescalinggroups.grove.io", {"op": "remove", "path": "/spec/names/shortNames"})


@mutant("operator", "serves the scale of cliques without a selector", "CRD-001", "CORE-013")
def _selector_path_missing() -> None:
    path = "/spec/versions/0/subresources/scale/labelSelectorPath"
    spoil("podcliques.grove.io", {"op": "remove", "path": path})


@mutant("operator", "serves gangs without the column for their phase", "CRD-002")
def _column_missing() -> None:
    path = "/spec/versions/0/additionalPrinterColumns/0"
    spoil("podgangs.scheduler.grove.io", {"op": "remove", "path": path})


@mutant("operator", "serves scaling groups without a default for minAvailable", "CRD-003")
def _default_missing() -> None:
    path = f"{SCHEMA}/spec/properties/minAvailable/default"
    spoil("podcliquescalinggroups.grove.io", {"op": "remove", "path": path})


@mutant(
    "operator", "serves sets without a default for the strategy's type", "ADM-061", name="strategy-type-undefaulted"
)
def leave_strategy_types_open() -> None:
    """Serve PodCliqueSets without a default for the type of the update strategy."""
    path = f"{SCHEMA}/spec/properties/updateStrategy/properties/type/default"
    spoil("podcliquesets.grove.io", {"op": "remove", "path": path})


@mutant("operator", "serves volumes of cliques as a plain list", "CRD-004")
def _list_without_keys() -> None:
    path = f"{SCHEMA}/spec/properties/podSpec/properties/volumes"
    keys = [{"op": "remove", "path": f"{path}/x-kubernetes-list-{word}"} for word in ("map-keys", "type")]
    spoil("podcliques.grove.io", *keys)
