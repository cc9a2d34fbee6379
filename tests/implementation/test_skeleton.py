"""Tests that the suite accepts a new descriptor that was generated from a few answers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance.implementation import loading
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.skeleton import Answers, descriptor

HEALTH = "http://127.0.0.1:${port.health}/readyz"
COMMAND = [sys.executable, "--kubeconfig=${kubeconfig}"]
ANSWERS = Answers("mine", "1.0", [Role.OPERATOR], "mine-scheduler", COMMAND, HEALTH)


def load_descriptor(answers: Answers, folder: Path) -> Descriptor:
    (folder / "mine.yaml").write_text(descriptor(answers))
    return loading.load(str(folder / "mine.yaml"))


def test_a_new_descriptor_contains_the_answers(tmp_path: Path) -> None:
    descriptor = load_descriptor(ANSWERS, tmp_path)
    assert (descriptor.name, descriptor.version, descriptor.scheduler_name, descriptor.start) == (
        "mine",
        "1.0",
        "mine-scheduler",
        "processes",
    )
    ((process,),) = descriptor.processes.values()
    assert (process.argv, process.ready.http) == (COMMAND, HEALTH)
    assert descriptor.manifests("crds")


def test_each_role_has_its_process(tmp_path: Path) -> None:
    answers = Answers("mine", "1.0", list(Role), "mine", [sys.executable], "started")
    descriptor = load_descriptor(answers, tmp_path)
    assert {role: processes[0].ready.log for role, processes in descriptor.processes.items()} == dict.fromkeys(
        Role, "started"
    )


def test_without_a_command_the_implementation_is_already_running(tmp_path: Path) -> None:
    descriptor = load_descriptor(Answers("mine", "1.0", [Role.OPERATOR], "mine"), tmp_path)
    assert (descriptor.start, descriptor.processes) == ("running", {})


@pytest.mark.parametrize("text", ["2.0", "yes", 'with "quotes"', "a: b", "# no comment", "ünï"])
def test_a_text_is_quoted_if_necessary(tmp_path: Path, text: str) -> None:
    descriptor = load_descriptor(Answers("mine", text, [Role.OPERATOR], "mine", [sys.executable, text], text), tmp_path)
    ((process,),) = descriptor.processes.values()
    assert (descriptor.version, process.argv[1], process.ready.log) == (text, text, text)
