"""Modes of hostile.py in which another server, or a webhook, answers for Grove's API groups."""

from __future__ import annotations

import contextlib
import json
import signal
from pathlib import Path

from kube.client import MERGE_PATCH
from kube.errors import ApiError
from tests.attacks.helpers import ledger_contains, mode, send, wait_until

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
GANGS, SETS = "v1alpha1.scheduler.grove.io", "v1alpha1.grove.io"
LOCAL = {"service": None, "insecureSkipTLSVerify": None}
"""The fields of an APIService that the API server serves itself."""


def take_over(kubeconfig: Path, name: str) -> None:
    """Let a Service that has no endpoints answer for a group version. The API server manages the APIService of a CRD as
    long as the APIService has the label."""
    spec = {"service": {"namespace": "default", "name": "hostile", "port": 443}, "insecureSkipTLSVerify": True}
    labels = {"kube-aggregator.kubernetes.io/automanaged": None}
    change = {"metadata": {"labels": labels}, "spec": spec}

    def is_taken_over() -> bool:
        with contextlib.suppress(ApiError):  # the API server has not made it yet, or changes it at the same time
            send(kubeconfig, "PATCH", f"{SERVICES}/{name}", change, content_type=MERGE_PATCH)
        return "service" in json.loads(send(kubeconfig, "GET", f"{SERVICES}/{name}"))["spec"]

    wait_until(is_taken_over)


def give_back(kubeconfig: Path, name: str) -> None:
    """Let the API server itself answer for a group version again."""
    send(kubeconfig, "PATCH", f"{SERVICES}/{name}", {"spec": LOCAL}, content_type=MERGE_PATCH)


@mode
def serve_gangs(kubeconfig: Path, folder: Path) -> None:
    """Let another server answer for PodGangs as soon as the suite is ready."""
    wait_until(lambda: ledger_contains(folder, '"phase":"ready"'))
    take_over(kubeconfig, GANGS)


@mode
def serve_gangs_early(kubeconfig: Path, folder: Path) -> None:
    """Let another server answer for PodGangs before the suite watches them."""
    take_over(kubeconfig, GANGS)


@mode
def serve_gangs_briefly(kubeconfig: Path, folder: Path) -> None:
    """Let another server answer for PodGangs for a moment."""
    wait_until(lambda: ledger_contains(folder, '"phase":"ready"'))
    take_over(kubeconfig, GANGS)
    give_back(kubeconfig, GANGS)


@mode
def serve_sets(kubeconfig: Path, folder: Path) -> None:
    """Let another server answer for sets as soon as the suite is ready."""
    wait_until(lambda: ledger_contains(folder, '"phase":"ready"'))
    take_over(kubeconfig, SETS)


@mode
def convert_gangs(kubeconfig: Path, folder: Path) -> None:
    """Let a webhook convert PodGangs as soon as the suite is ready."""
    wait_until(lambda: ledger_contains(folder, '"phase":"ready"'))
    webhook = {"clientConfig": {"url": "https://127.0.0.1:1/"}, "conversionReviewVersions": ["v1"]}
    change = {"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgangs.scheduler.grove.io"
    send(kubeconfig, "PATCH", path, change, content_type=MERGE_PATCH)
    signal.pause()
