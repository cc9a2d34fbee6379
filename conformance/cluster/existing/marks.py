"""The label by which a later command identifies the objects of a run on an existing cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

RUN_LABEL = "conformance.grove.io/run"
"""The label; its value is the id of the run."""
KEPT_ANNOTATION = "conformance.grove.io/kept"
"""The annotation of objects that a run is meant to leave behind. They do not indicate a killed run."""
HELM_ANNOTATION = "conformance.grove.io/helm-release"
"""The annotation of an object that stands for a Helm release: NAMESPACE/NAME."""


def with_run_label(manifest: Mapping[str, Any], run: str) -> dict[str, Any]:
    """Return an object with the label of a run; if there is no run, return it unchanged."""
    if not run:
        return dict(manifest)
    metadata = manifest.get("metadata") or {}
    return {**manifest, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), RUN_LABEL: run}}}


def run_of(manifest: Mapping[str, Any]) -> str:
    """Return the run that has created an object; empty if no run has."""
    return str((manifest["metadata"].get("labels") or {}).get(RUN_LABEL, ""))


def with_run_label_if_new(manifest: Mapping[str, Any], existing: bytes | None, run: str) -> Mapping[str, Any]:
    """Return an object with the label of a run, unless the object already existed before that run."""
    labels = orjson.loads(existing)["metadata"].get("labels") or {} if existing is not None else {RUN_LABEL: run}
    return with_run_label(manifest, run) if labels.get(RUN_LABEL) == run else manifest
