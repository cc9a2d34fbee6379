"""Features that an implementation serves in addition to those that its descriptor claims, read from its CRDs before a
run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import orjson

from conformance.errors import HarnessError, UsageError
from conformance.grove import lines
from conformance.grove.coherent import served
from conformance.grove.coherent.served import Served
from conformance.implementation import installation, placeholders
from conformance.implementation.descriptor import Descriptor, Role
from kube import errors
from kube.client import Client
from kube.resource import CRDS

CRD = ("CustomResourceDefinition",)
AGENT = "grove-conformance/discovery"


def complete(judged: Descriptor, kubeconfig: str = "") -> Descriptor:
    """Return the descriptor completed with the features and optional parts of the API that the CRDs show and, if the
    implementation plays the operator, with the release line and release of the contract. `kubeconfig` is the kubeconfig
    of an existing cluster, from which the CRDs are read if the descriptor installs none. Raises UsageError if the
    contract contradicts the CRDs, or HarnessError if the CRDs cannot be read."""
    if not judged.install.crds and not kubeconfig:  # only the descriptor is known
        return _with_contract(judged, judged.contract or _served_release_line(judged, Served()))
    api = _served_by_manifests(judged) if judged.install.crds else _served_by_cluster(Path(kubeconfig))
    release_line = _served_release_line(judged, api)
    claimed_release_line = lines.line_and_release(judged.contract)[0] if judged.contract else release_line
    if release_line and claimed_release_line != release_line:
        maps = "PodGangMaps with entries by epoch" if api.is_by_epoch else "no PodGangMaps with entries by epoch"
        raise UsageError(
            f"contract is {judged.contract}, but the CRDs serve {maps}: that is line {release_line}",
            where=placeholders.option(judged.document.value["contract"]) or judged.document.location("contract"),
            hint=f"say {release_line}, or install the CRDs of the line {claimed_release_line}",
        )
    return msgspec.structs.replace(
        _with_contract(judged, judged.contract or release_line),
        features=judged.features | api.features,
        discovered=api.findings,
    )


def _with_contract(judged: Descriptor, contract: str) -> Descriptor:
    """Return the descriptor with the release line and the release of a contract, if it plays the operator."""
    if Role.OPERATOR not in judged.roles:
        return judged
    release_line, release = lines.line_and_release(contract)
    return msgspec.structs.replace(judged, line=release_line, release=release)


def _served_release_line(judged: Descriptor, api: Served) -> str:
    """Return the release line that the CRDs show. It is empty for a scheduler, which follows the line of the operator
    that it runs with."""
    if Role.OPERATOR not in judged.roles:
        return ""
    return lines.MAPS if api.is_by_epoch else lines.NAMES


def _served_by_manifests(judged: Descriptor) -> Served:
    texts = {path: installation.text(path) for path in judged.manifests("crds")}
    if not any(served.MAPS_WORD in text or served.COHERENT in text for text in texts.values()):
        return Served()
    relevant = {path: text for path, text in texts.items() if "grove.io" in text}
    return served.read(crd for path, text in relevant.items() for crd in installation.read_manifests(path, text, CRD))


def _served_by_cluster(kubeconfig: Path) -> Served:
    async def read() -> Served:
        async with Client.from_kubeconfig(kubeconfig, user_agent=AGENT) as client:
            crds = [await client.get_or_none(CRDS, None, name) for name in (served.SETS, served.MAPS)]
        return served.read(orjson.loads(crd) for crd in crds if crd is not None)

    try:
        return asyncio.run(read())
    except errors.REQUEST_FAILED as error:
        raise HarnessError(f"the CRDs cannot be read: {error}", where=str(kubeconfig)) from error
