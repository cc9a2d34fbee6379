"""Installation of what an implementation needs in the API server before it starts: CRDs and webhook configurations.

`install_crds` and `install_webhooks` return only once the API server uses what was installed: a CRD is Established, a
webhook is called.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import orjson
from tenacity import AsyncRetrying, retry_if_not_result, wait_exponential
from tenacity import RetryError as NeverTrue

from conformance import bounded, documents
from conformance.cluster import pace
from conformance.cluster.existing.marks import with_run_label
from conformance.documents import display_path
from conformance.errors import ClusterTooSlow, HarnessError, UsageError
from kube.client import Client
from kube.errors import ApiError
from kube.objects import ObjectMeta
from kube.reflector import Reflector
from kube.resource import CONFIG_MAPS, CRDS, Resource

MANAGER = "grove-conformance"
TIMEOUT_SECONDS = 30.0
"""Seconds within which the API server must use a CRD or a webhook configuration, unless the machine is overloaded."""

WEBHOOKS = {
    kind: Resource("admissionregistration.k8s.io", "v1", f"{kind.lower()}s", kind, namespaced=False)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
}

Manifest = Mapping[str, Any]


def text(path: Path) -> str:
    """Return the text of a file with manifests. Raises UsageError if the file cannot be read."""
    return bounded.text(path, bounded.MAX_MANIFEST_BYTES, display_path(path))


@functools.lru_cache(maxsize=64)
def read_manifests(path: Path, text: str, kinds: tuple[str, ...] = ()) -> tuple[Manifest, ...]:
    """Return the objects in the text of a YAML file. Raises UsageError for invalid YAML and, if `kinds` are given, for
    objects of other kinds.

    Results are cached: a run needs the CRDs, which are long, both to discover features and to install them.
    """
    objects = documents.parse_all(path, text)
    for manifest in objects:
        kind = manifest.get("kind") if isinstance(manifest, dict) else None
        metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        version = manifest.get("apiVersion") if isinstance(manifest, dict) else None
        has_wrong_kind = kind not in kinds if kinds else not (isinstance(kind, str) and isinstance(version, str))
        if has_wrong_kind or not isinstance(name, str) or not name:
            raise UsageError(
                f"holds an object of kind {kind!r}" if has_wrong_kind else f"holds a {kind} without a name",
                where=display_path(path),
                hint=f"only {' and '.join(kinds) or 'objects with apiVersion'} with metadata.name belong here",
            )
    return tuple(objects)


async def install_crds(client: Client, crds: Sequence[Manifest]) -> None:
    """Apply the CRDs and wait until each of them is established (OBS-11: a process that starts earlier fails) and
    served.

    Raises HarnessError if a CRD is rejected or one of its names is taken, and ClusterTooSlow if the API server does not
    establish and serve the CRDs in time, because only the API server is involved in that.
    """
    if not crds:
        return
    await asyncio.gather(*(_apply_crd(client, crd) for crd in crds))
    sink = _EstablishmentWatch(crd["metadata"]["name"] for crd in crds)
    watch_task = asyncio.create_task(Reflector(client, CRDS, _CRD_DECODER.decode, sink).run())
    start = time.monotonic()
    try:
        while not await sink.wait_until_established(1.0):
            if (waited := time.monotonic() - start) >= pace.patience(TIMEOUT_SECONDS):
                raise sink.establishment_error(waited)
    finally:
        watch_task.cancel()
        await asyncio.gather(watch_task, return_exceptions=True)
    await asyncio.gather(*(_wait_until_served(client, crd) for crd in crds))


async def _apply_crd(client: Client, crd: Manifest) -> None:
    """Apply a CRD unless the API server has it already, because an apply costs ten times as much as a get."""
    stored = await client.get_or_none(CRDS, None, crd["metadata"]["name"])
    if stored is None or not is_stored(crd, orjson.loads(stored)):
        await _apply(client, CRDS, crd)


def is_stored(crd: Manifest, stored: Manifest) -> bool:
    """Return whether a CRD of the API server has exactly the spec of a manifest, after the API server's defaults, and
    the labels and annotations of the manifest."""
    names = crd["spec"]["names"]
    default_names = {"singular": names["kind"].lower(), "listKind": f"{names['kind']}List"}
    spec = {"conversion": {"strategy": "None"}, **crd["spec"], "names": {**default_names, **names}}
    return bool(stored["spec"] == spec) and all(
        (crd["metadata"].get(field) or {}).items() <= (stored["metadata"].get(field) or {}).items()
        for field in ("labels", "annotations")
    )


def check_webhook(path: Path, configuration: Manifest) -> None:
    """Raise UsageError unless each hook is a URL on loopback: there is no pod network through which a Service could be
    reached."""
    for hook in configuration.get("webhooks") or ():
        url = (hook.get("clientConfig") or {}).get("url")
        if not url or urlsplit(url).hostname not in ("127.0.0.1", "localhost", "::1"):
            raise UsageError(
                f"the webhook {hook.get('name')} of {configuration['metadata']['name']} is not on loopback",
                where=display_path(path),
                hint="give clientConfig.url: https://127.0.0.1:${port.webhook}/… and caBundle: ${ca}, no service",
            )


async def install_webhooks(
    client: Client, configurations: Sequence[Manifest], stale: Collection[tuple[str, str]] = (), run: str = ""
) -> None:
    """Delete the `stale` configurations (kind and name), apply the other configurations, and wait until the API server
    calls webhooks that were configured after them. If a run is given, all configurations get its label, even those that
    existed before: from now on they call processes of the run.

    Raises HarnessError if a configuration is rejected or the API server does not use the configurations within 30 s.
    """
    for kind, name in sorted(stale):
        await client.delete(WEBHOOKS[kind], None, name)
    for configuration in configurations:
        await _apply(client, WEBHOOKS[configuration["kind"]], with_run_label(configuration, run))
    for kind in sorted({configuration["kind"] for configuration in configurations} | {kind for kind, _ in stale}):
        await _wait_for_webhooks(client, kind, run)


def served_resources(crd: Manifest) -> list[Resource]:
    """Return the resources of the versions that a CRD serves."""
    spec = crd["spec"]
    names, namespaced = spec["names"], spec["scope"] == "Namespaced"
    versions = [version["name"] for version in spec["versions"] if version["served"]]
    return [Resource(spec["group"], version, names["plural"], names["kind"], namespaced) for version in versions]


async def _wait_until_served(client: Client, crd: Manifest) -> None:
    """Wait until an established CRD is served: for an instant the API server may respond with 404, or with 429 while
    its storage starts."""

    async def is_served() -> bool:
        try:
            for resource in served_resources(crd):
                await client.request("GET", resource.path(), params={"limit": "1"})
        except ApiError as error:
            if error.status in (404, 429, 503):
                return False
            raise
        return True

    await wait_until(
        is_served, f"the API server does not serve {crd['metadata']['name']} {TIMEOUT_SECONDS:g} s after it was applied"
    )


async def wait_until(condition: Callable[[], Awaitable[bool]], complaint: str) -> None:
    """Poll until `condition` returns True, because there is nothing to watch. Raises ClusterTooSlow with the message
    `complaint` after TIMEOUT_SECONDS, or later on an overloaded machine."""
    try:
        await AsyncRetrying(
            retry=retry_if_not_result(bool),
            wait=wait_exponential(multiplier=0.01, max=0.2),
            stop=pace.stop_after(TIMEOUT_SECONDS),
        )(condition)
    except NeverTrue as error:
        raise ClusterTooSlow(complaint, hint="see the log of kube-apiserver") from error


async def _wait_for_webhooks(client: Client, kind: str, run: str) -> None:
    """Wait until the API server uses all webhook configurations that have been applied so far.

    The API server receives them through a watch, in order. Therefore one more configuration is created, which rejects a
    dry-run request of the suite, and it is deleted once the request is rejected: by then all earlier configurations are
    in effect. The request is rejected because the configuration points to a port on which nothing listens. Its selector
    matches no other object.
    """
    unique_name = f"grove-conformance-{secrets.token_hex(4)}"
    hook = {
        "name": "barrier.conformance.grove.io",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        "objectSelector": {"matchLabels": {"conformance.grove.io/barrier": unique_name}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 1,
        "admissionReviewVersions": ["v1"],
    }
    resource = WEBHOOKS[kind]
    await _apply(
        client,
        resource,
        with_run_label(
            {"apiVersion": resource.api_version, "kind": kind, "metadata": {"name": unique_name}, "webhooks": [hook]},
            run,
        ),
    )
    probe = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": unique_name,
            "namespace": "default",
            "labels": {"conformance.grove.io/barrier": unique_name},
        },
    }

    async def is_rejected() -> bool:
        try:
            await client.request(
                "POST", CONFIG_MAPS.path("default"), params={"dryRun": "All", "fieldManager": MANAGER}, body=probe
            )
        except ApiError as error:
            return "barrier.conformance.grove.io" in error.message
        return False

    try:
        await wait_until(
            is_rejected,
            f"the API server does not call webhooks {TIMEOUT_SECONDS:g} s after they were configured ({kind})",
        )
    finally:
        await client.delete(resource, None, unique_name)


async def _apply(client: Client, resource: Resource, manifest: Manifest) -> None:
    try:
        await client.apply(resource, manifest, manager=MANAGER)
    except ApiError as error:
        name = manifest["metadata"]["name"]
        raise HarnessError(
            f"the API server refused {resource.kind} {name}: {error.message}", hint="fix the manifest"
        ) from error


class _Condition(msgspec.Struct):
    type: str
    status: str
    message: str = ""


class _CrdStatus(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _Crd(msgspec.Struct):
    metadata: ObjectMeta
    status: _CrdStatus | None = None

    @property
    def refused(self) -> bool:
        """Return whether the CRD cannot be established because another CRD has one of its names."""
        conditions = (self.status.conditions if self.status else None) or []
        return any(condition.type == "NamesAccepted" and condition.status == "False" for condition in conditions)

    def establishment_problem(self) -> str:
        """Return the error messages in the conditions; an empty string if the CRD is established."""
        conditions = (self.status.conditions if self.status else None) or []
        if any(condition.type == "Established" and condition.status == "True" for condition in conditions):
            return ""
        complaints = [c.message for c in conditions if c.status != "True" and c.message]
        return ", ".join(complaints) or "no condition yet"


_CRD_DECODER = msgspec.json.Decoder(_Crd)


class _EstablishmentWatch:
    """Waits until the watch shows that the CRDs are established."""

    def __init__(self, names: Iterable[str]) -> None:
        self.waiting = dict.fromkeys(names, "not seen yet")
        self.refused: set[str] = set()
        self.done = asyncio.Event()

    async def wait_until_established(self, timeout: float) -> bool:
        """Return whether all CRDs become established within `timeout` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self.done.wait()
        return self.done.is_set()

    def establishment_error(self, seconds: float) -> HarnessError:
        """Return the error for CRDs that are not established after this time."""
        waiting = "; ".join(f"{name}: {reason}" for name, reason in sorted(self.waiting.items()))
        error_class = HarnessError if self.refused & self.waiting.keys() else ClusterTooSlow
        return error_class(f"CRDs are not established after {seconds:.0f} s: {waiting}", hint="see the CRDs")

    def on_list(self, items: list[_Crd]) -> None:
        """Process the complete list that the watch starts with."""
        for item in items:
            self._update(item)

    def on_event(self, kind: str, item: _Crd) -> None:
        if kind != "DELETED":
            self._update(item)

    def _update(self, crd: _Crd) -> None:
        name = crd.metadata.name
        if name in self.waiting:
            self.waiting[name] = crd.establishment_problem()
            self.refused = self.refused | {name} if crd.refused else self.refused - {name}
            if not self.waiting[name]:
                del self.waiting[name]
        if not self.waiting:
            self.done.set()
