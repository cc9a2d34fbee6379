"""ResourceQuotas with which tests make the API server reject pods."""

from __future__ import annotations

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from conformance.errors import HarnessError
from conformance.grove.fields import mapping
from conformance.suite.scenes.scene_environment import SceneEnvironment

ENFORCEMENT_SECONDS = 30.0
"""Seconds within which the quota controller must have synced a new quota."""


def limit_pods(env: SceneEnvironment, name: str, pods: int) -> None:
    """Create a ResourceQuota for pods, and wait until the quota controller has synced it (`status.hard` is set). Until
    then, pods may exceed the quota."""
    hard = {"pods": str(pods)}
    env.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": hard}})

    def is_counted() -> bool:
        quota = env.dry_run.ask(env.dry_run.get("resourcequotas", name)).object
        return mapping(quota, "status", "hard") == hard

    stop = stop_after_delay(env.patience(ENFORCEMENT_SECONDS))
    try:
        Retrying(retry=retry_if_result(lambda enforced: not enforced), wait=wait_fixed(0.1), stop=stop)(is_counted)
    except RetryError:
        raise HarnessError(f"the ResourceQuota {name} is not counted", where=env.namespace) from None
