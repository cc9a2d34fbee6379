"""Tests that the instructions for new users work: the commands in README.md, and the samples that they apply."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from conformance.cluster import pod_behaviors
from conformance.data import PROJECT
from tests.reference import apiserver

PROGRAM = "grove-conformance"
README = PROJECT / "README.md"
E2E_PAGE = PROJECT / "docs" / "your-own-e2e-tests.md"
SAMPLES = PROJECT / "fixtures" / "samples"
SAMPLE_SETS = [
    pytest.param(document, id=path.stem)
    for path in sorted(SAMPLES.glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text("utf-8"))
    if document.get("kind") == "PodCliqueSet" and "topologyName" not in path.read_text("utf-8")
]
"""Sample sets that need no other object in the cluster, such as a ClusterTopologyBinding."""


def commands(page: Path, heading: str) -> list[str]:
    """Return the commands of the first block below a heading."""
    section = page.read_text("utf-8").split(f"\n## {heading}\n")[1]
    block = re.search(r"(?:^    .+\n)+", section, re.M)
    assert block is not None
    return [line.strip() for line in block[0].splitlines()]


def with_namespace(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "metadata": {**document["metadata"], "namespace": "default"}}


def test_only_the_readme_says_how_commands_are_typed() -> None:
    """A command that starts with `.venv/bin/` does not exist if only the wheel is installed."""
    pages = [README, *(PROJECT / "docs").rglob("*.md")]
    counts = {str(page.relative_to(PROJECT)): page.read_text("utf-8").count(f".venv/bin/{PROGRAM}") for page in pages}
    assert {name: count for name, count in counts.items() if count} == {"README.md": 1}
    assert "**How to type commands.**" in README.read_text("utf-8")


@pytest.mark.parametrize("document", SAMPLE_SETS)
def test_sample_sets_are_accepted(document: dict[str, Any]) -> None:
    reply = apiserver.ask(with_namespace(document))
    assert reply.status == 201, reply.message
    assert not list(pod_behaviors.mistakes_of_set(document))


def test_the_playground_starts_with_a_sample() -> None:
    [sample] = re.findall(r"--sample (\S+)", "\n".join(commands(README, "I want a fake GPU cluster")))
    assert (SAMPLES / f"{sample}.yaml").is_file()


def test_a_set_for_the_scheduler_of_the_e2e_page_needs_the_label_that_the_page_names() -> None:
    page = E2E_PAGE.read_text("utf-8")
    (scheduler,) = re.findall(r"--set schedulerName=(\S+)", page)
    (label,) = re.findall(r"the label\s+`(\S+/queue)`", page)
    pcs = with_namespace(yaml.safe_load((SAMPLES / "serving.yaml").read_text("utf-8")))
    for clique in pcs["spec"]["template"]["cliques"]:
        clique["spec"]["podSpec"]["schedulerName"] = scheduler
    rejected_reply = apiserver.ask(pcs)
    (message,) = re.findall(r"refuses the set \(`([^`…]+)…`\)", page)
    assert rejected_reply.status == 403 and " ".join(message.split()) in rejected_reply.message
    pcs["metadata"]["labels"] = {label: "any"}
    assert apiserver.ask(pcs).status == 201


def run(command: str, state: Path) -> str:
    assert command.startswith(PROGRAM)
    arguments = [sys.executable, "-m", "conformance.cli", *command.removeprefix(PROGRAM).split()]
    environment = os.environ | {"GROVE_CONFORMANCE_STATE": str(state)}
    result = subprocess.run(arguments, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=180)
    assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
    return result.stdout


@pytest.mark.cluster
def test_the_commands_of_the_readme_show_a_set_with_its_gangs_and_running_pods(tmp_path: Path) -> None:
    start, get, stop = commands(README, "I want a fake GPU cluster")
    run(start, tmp_path)
    try:
        wait_for_pods = Retrying(retry=retry_if_result(lambda output: output.count("1/1") < 8), wait=wait_fixed(0.5))
        output = wait_for_pods.copy(stop=stop_after_delay(60))(run, get, tmp_path)
        for name in ("podcliqueset.grove.io/serving", "podgang.scheduler.grove.io/serving-0", "pod/serving-0-router"):
            assert name in output
    finally:
        run(stop, tmp_path)
