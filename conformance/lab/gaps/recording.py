"""The recording of an instance's run: its objects as YAML, its history, and a script of the actions in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from conformance.evidence import replay
from conformance.evidence.replay import WAIT, Act
from conformance.history import storage
from conformance.history.record import Record
from conformance.testing.scene import SceneEnvironment

OBJECTS, SCRIPT, HISTORY = "objects.yaml", "replay.sh", "history.jsonl"


def write(folder: Path, env: SceneEnvironment, name: str) -> None:
    """Write the recording of one bench of a scene."""
    folder.mkdir(parents=True, exist_ok=True)
    records = list(_bench_records(env.history.records(), env.pool, name))
    acts = list(_acts(env.acts, name, env.pool))
    created_objects = [body for action, body in acts if action == "create"]
    (folder / OBJECTS).write_text(
        yaml.dump_all(created_objects, Dumper=yaml.CSafeDumper, sort_keys=False), encoding="utf-8"
    )
    (folder / SCRIPT).write_text(replay.script(acts, f"gap-{name}"), encoding="utf-8")
    storage.save(folder / HISTORY, env.namespace, env.history.now(), records, env.history.origins)


def _acts(acts: Iterable[Act], name: str, pool: str) -> Iterator[Act]:
    """Yield the actions on a bench. The namespace of objects is left out, because a repetition uses a different one."""
    shared_kinds = ("PriorityClass", "ClusterTopologyBinding")
    for action, body in acts:
        if action == WAIT or f"/{name}-" in action:
            yield action, body
        elif action == "create" and body.get("kind") == "List":
            if items := [item for item in body["items"] if item["metadata"]["name"].startswith(f"{pool}-{name}-")]:
                yield action, {**body, "items": items}
        elif action == "create" and (_has_name(body, name) or body.get("kind") in shared_kinds):
            metadata = {key: value for key, value in body["metadata"].items() if key != "namespace"}
            yield action, {**body, "metadata": metadata}


def _bench_records(records: Iterable[Record], pool: str, name: str) -> Iterable[Record]:
    for record in records:
        if record.name == name or record.name.startswith((f"{name}-", f"{pool}-{name}-")):
            yield record


def _has_name(body: Mapping[str, Any], name: str) -> bool:
    return f"{body.get('metadata', {}).get('name', '')}-".startswith(f"{name}-")
