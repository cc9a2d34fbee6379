"""A note in the cluster for each Helm release of a run, because Helm's own objects do not have the label of the run."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from conformance.cluster.existing.marks import HELM_ANNOTATION, with_run_label
from conformance.errors import HarnessError

NAMESPACE = "kube-system"
TIMEOUT_SECONDS = 300.0
"""Seconds that Helm may take to uninstall a release."""


def note_name(namespace: str, release: str) -> str:
    """Return the name of the ConfigMap that serves as the note of a release."""
    return f"grove-conformance-helm-{namespace}-{release}"


def note(namespace: str, release: str, run: str) -> dict[str, Any]:
    """Return the note of a release of a run."""
    metadata = {
        "name": note_name(namespace, release),
        "namespace": NAMESPACE,
        "annotations": {HELM_ANNOTATION: f"{namespace}/{release}"},
    }
    return with_run_label({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, run)


def uninstall(kubeconfig: Path, release: str) -> None:
    """Uninstall a release, given as NAMESPACE/NAME. Raises HarnessError if Helm fails."""
    namespace, _, release_name = release.partition("/")
    command = ["helm", "uninstall", release_name, "--namespace", namespace, "--ignore-not-found"]
    try:
        completed_process = subprocess.run(
            [*command, "--kubeconfig", str(kubeconfig)], capture_output=True, text=True, timeout=TIMEOUT_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"helm uninstall failed: {error}", where=f"release {release}") from error
    if completed_process.returncode:
        output = " ".join(completed_process.stderr.split())
        raise HarnessError(f"helm uninstall failed: {output}", where=f"release {release}", hint="run it by hand")
