"""Helpers for the modes of hostile.py: requests to the API server, and checks of the run's ledgers."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from kube import config
from kube.client import JSON, MERGE_PATCH, Client
from kube.errors import ApiError

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
NODES = "/api/v1/nodes"
Mode = Callable[[Path, Path], None]
MODES: dict[str, Mode] = {}
PREPARATIONS: set[Mode] = set()
"""The modes that finish before the command starts, so that the run starts no test before the attack has an effect."""


def mode(function: Mode) -> Mode:
    """Register a mode under its name in attacks.yaml."""
    MODES[function.__name__.replace("_", "-")] = function
    return function


def preparation(function: Mode) -> Mode:
    """Register a mode that finishes before the command starts."""
    PREPARATIONS.add(function)
    return mode(function)


def send(
    kubeconfig: Path | config.Connection,
    verb: str,
    path: str,
    body: Any = None,
    *,
    content_type: str = JSON,
    agent: str = "hostile/1.0",
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """Send a request to the API server and return the body of the response. Raises `kube.errors.ApiError` if the API
    server rejects the request."""

    async def send_request() -> bytes:
        async with Client.from_kubeconfig(kubeconfig, user_agent=agent) as client:
            return await client.request(verb, path, body=body, content_type=content_type, headers=headers)

    return asyncio.run(send_request())


def anonymous_tls_context(kubeconfig: Path) -> ssl.SSLContext:
    """Return the TLS context of a client without a certificate."""
    [cluster] = yaml.safe_load(kubeconfig.read_text())["clusters"]
    authority = base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode()
    return ssl.create_default_context(cadata=authority)


def wait_until(condition: Callable[[], object], seconds: float = 240) -> None:
    """Block until the condition holds. Raises TimeoutError if it does not hold within `seconds`, because the attack
    would then prove nothing."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the condition of an attack did not hold within {seconds:g} s")
        time.sleep(0.05)


def has_failed_check(folder: Path) -> bool:
    """Return whether a check of the run has failed."""
    return ledger_contains(folder, '"outcome":"failed"')


def ledger_contains(folder: Path, text: str) -> bool:
    """Return whether a ledger of the run contains a text."""
    return any(text in ledger.read_text() for ledger in folder.glob("reports/*/ledger/*.jsonl"))


def patch(kubeconfig: Path | config.Connection, path: str, body: Any) -> None:
    """Apply a JSON merge patch. Errors are ignored, because the object may have been changed or deleted."""
    with contextlib.suppress(ApiError):
        send(kubeconfig, "PATCH", path, body, content_type=MERGE_PATCH)


def for_each_object(kubeconfig: Path, path: str, action: Callable[[Any], None]) -> None:
    """Call an action for each object of a list, again and again, until the suite ends this program."""
    while True:
        with contextlib.suppress(ApiError, OSError):
            for item in json.loads(send(kubeconfig, "GET", path))["items"]:
                action(item)
        time.sleep(0.02)


def existing_nodes(kubeconfig: Path) -> list[str]:
    """Wait until there are nodes, and return the names of all nodes."""
    names: list[str] = []

    def is_present() -> bool:
        items = json.loads(send(kubeconfig, "GET", NODES))["items"]
        names[:] = [item["metadata"]["name"] for item in items]
        return bool(names)

    wait_until(is_present)
    return names
