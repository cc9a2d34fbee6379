"""The options of all commands that start clusters: the version of Kubernetes and its features."""

from __future__ import annotations

from typing import Annotated

import typer

from conformance.cluster import features, policies
from conformance.cluster.features import FeatureRequest

Kubernetes = Annotated[
    str,
    typer.Option(
        "--kubernetes", metavar="VERSION", help="Version of Kubernetes, for example 1.37: see `cluster versions`."
    ),
]
Presets = Annotated[
    list[str] | None,
    typer.Option(
        features.PRESET, metavar="NAME", help="Enable these features of Kubernetes, for example workload-api."
    ),
]
Gates = Annotated[
    list[str] | None,
    typer.Option(
        features.GATES,
        metavar="[COMPONENT:]GATE=BOOL",
        help="Switch feature gates, of all components that know them or of one (repeatable).",
    ),
]
RuntimeConfig = Annotated[
    list[str] | None,
    typer.Option(
        features.RUNTIME_CONFIG,
        metavar="GROUP/VERSION=BOOL",
        help="Switch API versions of the API server (repeatable).",
    ),
]
Policy = Annotated[
    list[str] | None,
    typer.Option(
        policies.OPTION,
        metavar="NAME[,NAME…]",
        help="Enforce this policy: limits, quota, rbac, restricted, sidecar, or a file or folder of manifests"
        " (repeatable).",
    ),
]


def requested_features(
    presets: list[str] | None, gates: list[str] | None, runtime_config: list[str] | None
) -> FeatureRequest:
    """Return the features that the options request."""
    return FeatureRequest(tuple(presets or ()), tuple(gates or ()), tuple(runtime_config or ()))
