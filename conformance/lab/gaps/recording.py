"""What is kept of an instance that was played: its objects as YAML, its history, and what was done to it in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from conformance.history import storage
from conformance.history.record import ADDED, Record
from conformance.testing.scene import SceneEnvironment

OBJECTS, STEPS, HISTORY = "objects.yaml", "steps.txt", "history.jsonl"
ADDED_BY_OTHERS = ("creationTimestamp", "uid", "resourceVersion", "managedFields", "generation", "finalizers")


def write(folder: Path, env: SceneEnvironment, name: str) -> None:
    """Write what belongs to one bench of a scene."""
    folder.mkdir(parents=True, exist_ok=True)
    records = list(_own(env.history.records(), env.pool, name))
    nodes = [_as_made(record.object) for record in records if record.resource == "nodes" and record.kind == ADDED]
    made = [body for what, body in env.made if what == "create" and _named(body, name)]
    steps = [f"{what}: {_flow(body)}" for what, body in env.made if what != "create" and f"/{name}-" in what]
    (folder / OBJECTS).write_text(yaml.safe_dump_all([*nodes, *made], sort_keys=False), encoding="utf-8")
    lines = ["# After the objects are created in their order:", *steps]
    (folder / STEPS).write_text("\n".join(lines) + "\n", encoding="utf-8")
    storage.save(folder / HISTORY, env.namespace, env.history.now(), records, env.history.origins)


def _own(records: Iterable[Record], pool: str, name: str) -> Iterable[Record]:
    for record in records:
        if record.name.startswith((f"{name}-", f"{pool}-{name}-")):
            yield record


def _named(body: Mapping[str, Any], name: str) -> bool:
    return str(body.get("metadata", {}).get("name", "")).startswith(f"{name}-")


def _as_made(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in ADDED_BY_OTHERS}
    return {**obj, "metadata": metadata}


def _flow(body: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(body), default_flow_style=True, width=10_000).strip()
