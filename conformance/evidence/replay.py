"""A shell script of kubectl commands that repeats a test on a cluster without this suite. Pure functions."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

Act = tuple[str, Mapping[str, Any]]
"""An action (`create`, `patch pods/x`, `delete pods/x`, `evict pods/x`, `wait`) and its body."""

WAIT = "wait"
"""The action that represents a wait of the test. Its body describes the condition for which the test waited."""
HEREDOC_END = "END_OF_OBJECTS"
SCRIPT_HEAD = """\
#!/bin/sh
# What the test did, with kubectl alone: on a cluster of the same version with the same feature gates, whose nodes are
# played by KWOK (https://kwok.sigs.k8s.io). Where the test waited, this waits until the pods stay as they are.
set -eu
namespace={namespace}
k() {{ kubectl --namespace "$namespace" "$@"; }}
pods() {{ k get pods --no-headers --output custom-columns=:.metadata.name,:.spec.nodeName,:.status.phase 2>&1; }}
at_rest() {{
  kubectl wait node --all --for=condition=Ready --timeout=60s >/dev/null
  before= now=unknown
  while [ "$before" != "$now" ]; do before=$now; sleep "${{REST:-5}}"; now=$(pods); done
}}
kubectl create namespace "$namespace"
"""
SCRIPT_TAIL = "at_rest\nk get pods --output wide\n"


def script(acts: Sequence[Act], namespace: str) -> str:
    """Return the script, which creates its own namespace."""
    return SCRIPT_HEAD.format(namespace=shlex.quote(namespace)) + "".join(_commands(acts)) + SCRIPT_TAIL


def _commands(acts: Sequence[Act]) -> Iterator[str]:
    """Yield the commands. Consecutive creations are combined into one command, and so are consecutive waits."""
    objects: list[Mapping[str, Any]] = []
    just_waited = True
    for action, body in acts:
        if action == "create":
            objects.append(body)
            continue
        if objects:
            yield _create(objects)
            objects, just_waited = [], False
        if action != WAIT:
            yield _command(action, body)
            just_waited = False
        elif not just_waited:
            yield f"at_rest # {json.dumps(body.get('for', ''))}\n"
            just_waited = True
    if objects:
        yield _create(objects)


def _create(objects: Sequence[Mapping[str, Any]]) -> str:
    """Return commands that create the objects that do not exist yet, and that set their statuses: the API server keeps
    the status of a created object only for nodes."""
    text = yaml.dump_all(objects, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
    statuses = [
        _patch(f"{body['kind']}/{body['metadata']['name']}", {"status": body["status"]}, "status")
        for body in objects
        if "status" in body and body.get("kind") != "Node"
    ]
    return f"k apply --filename - <<'{HEREDOC_END}'\n{text}{HEREDOC_END}\n" + "".join(statuses)


def _patch(target: str, body: Mapping[str, Any], subresource: str = "") -> str:
    subresource_option = f" --subresource {subresource}" if subresource else ""
    return f"k patch {shlex.quote(target)}{subresource_option} --type merge --patch {shlex.quote(json.dumps(body))}\n"


def _command(action: str, body: Mapping[str, Any]) -> str:
    verb, _, target = action.partition(" ")
    match verb:
        case "patch":
            resource, name, *subresource = target.split("/")
            return _patch(f"{resource}/{name}", body, *subresource)
        case "delete":
            cascade = str(body.get("propagationPolicy", "Background")).lower()
            return f"k delete {shlex.quote(target)} --cascade={cascade} --wait=false\n"
        case _:
            return f"# {action} {json.dumps(body)}\n"
