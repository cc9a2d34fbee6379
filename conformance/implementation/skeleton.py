"""The text of a new descriptor, generated from a few answers. Pure; `loading` checks the result like any other file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.grove import lines
from conformance.implementation.descriptor import Role

_REFERENCE_CRDS = "${project}/reference_impl/crds"
OUR_CRDS = {
    lines.NAMES: tuple(
        f"{_REFERENCE_CRDS}/{name}" for name in ("podclique*.yaml", "podgangs.*.yaml", "clustertopologybindings.*.yaml")
    ),
    lines.MAPS: (_REFERENCE_CRDS,),
}
"""Maps a release line of the contract to the CRDs of the reference, for an implementation without CRDs of its own. The
CRDs of the line `maps` serve PodGangMaps and the strategy Coherent, so they claim the feature `coherent`."""
GUIDE = "grove-conformance implementation guide"


@dataclass(frozen=True)
class Answers:
    """The minimal content of a descriptor. An implementation without a `command` is already running. `ready` is a URL,
    or a regular expression for a log line. All texts may contain placeholders."""

    name: str
    version: str
    roles: Sequence[Role]
    scheduler_name: str
    command: Sequence[str] = ()
    ready: str = ""
    crds: Sequence[str] = OUR_CRDS[lines.NAMES]
    webhooks: str = ""
    features: Sequence[str] = ()


def descriptor(answers: Answers) -> str:
    """Return the YAML text of a descriptor, with comments that explain what can be added."""
    roles = [str(role) for role in answers.roles]
    lines = [
        f"# How the Grove conformance suite installs, starts and stops {answers.name}.",
        f"# All fields: `{GUIDE}`.",
        "apiVersion: conformance.grove.io/v1alpha1",
        "kind: Implementation",
        f"name: {_yaml_scalar(answers.name)}",
        f"version: {_yaml_scalar(answers.version)}",
        f"roles: [{', '.join(roles)}]",
        f"schedulerName: {_yaml_scalar(answers.scheduler_name)}",
        "# Optional features that you claim; requirements of other features are reported as not claimed.",
        f"features: [{', '.join(answers.features)}]",
        *([] if answers.command else ["start: running"]),
        "",
        "install:",
        "  crds:",
        *(f"    - {_yaml_scalar(crds)}" for crds in answers.crds),
        *([f"  webhooks: [{_yaml_scalar(answers.webhooks)}]"] if answers.webhooks else []),
    ]
    if answers.command:
        lines += ["", "processes:", *(line for role in roles for line in _process(role, answers))]
    lines += [
        "",
        "# Requirements that are known to fail, for a CI that is to be green before everything passes:",
        "# expectedFailures:",
        "#   - {id: CORE-001, reason: not done yet, expires: 2030-01-31}",
    ]
    return "\n".join(lines) + "\n"


def _process(role: str, answers: Answers) -> list[str]:
    condition = "http" if answers.ready.startswith("http://") else "log"
    return [
        f"  {role}:",
        "    # Each item is one argument; there is no shell. ${port.NAME} is a free port of 127.0.0.1.",
        "    argv:",
        *(f"      - {_yaml_scalar(word)}" for word in answers.command),
        f"    ready: {{{condition}: {_yaml_scalar(answers.ready)}, within: 30}}",
    ]


def _yaml_scalar(text: str) -> str:
    """Return a text as a YAML scalar. JSON strings are valid YAML."""
    return json.dumps(text, ensure_ascii=False)
