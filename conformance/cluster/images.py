"""Extraction of programs from an official image: index, manifest and layers, each verified by its digest.

Uses the OCI distribution API, without any other program. Pure, except for `fetch`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from conformance import bounded
from conformance.cluster import archives
from conformance.cluster.pins import Program
from conformance.cluster.sites import Unavailable
from conformance.cluster.transfer import Transfers
from conformance.errors import UsageError

INDEX = "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"
_DIGEST = re.compile("sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")


def fetch(program: Program, members: Mapping[str, Path], platform: str, transfers: Transfers) -> None:
    """Write members of the image of `program` to files (`members` maps a path in the image to a file). Raises
    Unavailable or ChecksumMismatch."""
    scratch = next(iter(members.values())).with_name("download")

    def document(digest: str, media_types: str) -> Any:
        transfers.fetch(f"{program.repository}/manifests/{digest}", scratch, digest, media_types)
        location = f"{program.repository}: {digest}"
        try:
            return bounded.json(bounded.content(scratch, bounded.MAX_MANIFEST_BYTES, location), location)
        except UsageError as error:
            raise Unavailable(str(error)) from error

    manifest = document(manifest_digest(document(program.digest, INDEX), platform), MANIFEST)
    missing_members = dict(members)
    for digest in layer_digests(manifest):
        transfers.fetch(f"{program.repository}/blobs/{digest}", scratch, digest)
        for member in archives.extract(scratch, missing_members):
            del missing_members[member]
        scratch.unlink()
        if not missing_members:
            return
    raise Unavailable(f"{program.repository}: no layer contains a file {min(missing_members)}")


def manifest_digest(index: Any, platform: str) -> str:
    """Return the digest of the manifest for a platform such as `linux-amd64`. Raises Unavailable if there is none."""
    for entry in _list(index, "manifests"):
        platform_fields = entry.get("platform")
        if (
            isinstance(platform_fields, dict)
            and f"{platform_fields.get('os')}-{platform_fields.get('architecture')}" == platform
        ):
            return _digest(entry)
    raise Unavailable(f"the index of the image has no manifest for {platform}")


def layer_digests(manifest: Any) -> Iterator[str]:
    """Yield the digests of the layers, the topmost layer first, because an image has its program there. Raises
    Unavailable if the manifest is invalid."""
    for entry in reversed(_list(manifest, "layers")):
        yield _digest(entry)


def _list(document: Any, key: str) -> list[dict[str, Any]]:
    entries = document.get(key) if isinstance(document, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise Unavailable(f"a document of the image has no list `{key}`")
    return entries


def _digest(entry: dict[str, Any]) -> str:
    digest = str(entry.get("digest"))
    if not _DIGEST.fullmatch(digest):
        raise Unavailable(f"a document of the image has the digest {digest[:80]!r}")
    return digest
