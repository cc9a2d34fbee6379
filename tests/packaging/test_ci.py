"""Tests that the files that docs/ci.md offers are valid for their CI systems, and that their shell scripts do what the
page says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.data import PROJECT

PAGE = PROJECT / "docs" / "ci.md"
ACTION = PROJECT / "action.yml"
CONTAINERFILE = PROJECT / "Containerfile"
MINIMAL_WORKFLOW, SHARDED_WORKFLOW, OPERATOR_WORKFLOW, PIPELINE = re.findall(
    r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.M | re.S
)
GITHUB_SCHEMA, GITLAB_SCHEMA = ("vendor.github-workflows",), ("vendor.gitlab-ci", "--data-transform=gitlab-ci")
CI_FILES = {
    "short": (MINIMAL_WORKFLOW, GITHUB_SCHEMA),
    "sharded": (SHARDED_WORKFLOW, GITHUB_SCHEMA),
    "operator": (OPERATOR_WORKFLOW, GITHUB_SCHEMA),
    "pipeline": (PIPELINE, GITLAB_SCHEMA),
    "action": (ACTION.read_text(), ("vendor.github-actions",)),
}
FAKE_SUITE = """#!/usr/bin/env python3
import json, os, pathlib, sys
options = dict(zip(sys.argv[2::2], sys.argv[3::2]))
if sys.argv[1:3] == ["report", "annotations"]:
    sys.exit(print("::error title=CORE-001::wrong"))
pathlib.Path("arguments.json").write_text(json.dumps(sys.argv[1:]))
if made := "--report-dir" in options and os.environ["CODE"] != "4":
    pathlib.Path(options["--report-dir"], "r1").mkdir(parents=True)
    pathlib.Path(options["--report-dir"], "r1", "report.yaml").touch()
if os.environ["CODE"] == "4":
    sys.exit(print("what to correct", file=sys.stderr) or 4)
print("the verdict")
sys.exit(int(os.environ["CODE"]))
"""
"""The source of a fake `grove-conformance` that stores its arguments, writes a report unless CODE is a usage error, and
exits with CODE."""


def action_steps() -> list[dict[str, Any]]:
    """Return the steps of the action."""
    result: list[dict[str, Any]] = yaml.safe_load(ACTION.read_text())["runs"]["steps"]
    return result


def scripts(value: Any) -> list[str]:
    """Return all shell scripts in a parsed file. Expressions of the CI system are replaced by a word."""
    if isinstance(value, list):
        return [script for inner in value for script in scripts(inner)]
    if not isinstance(value, dict):
        return []
    result = [script for inner in value.values() for script in scripts(inner)]
    for name in ("run", "script", "before_script"):
        match value.get(name):
            case str(text):
                result.append(re.sub(r"\$\{\{.*?\}\}", "word", text))
            case [*lines]:
                result.append("\n".join(lines))
    return result


@pytest.mark.parametrize("name", CI_FILES)
def test_a_file_matches_the_schema_of_its_ci_system(tmp_path: Path, name: str) -> None:
    text, schema = CI_FILES[name]
    (tmp_path / "file.yaml").write_text(text)
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", *schema, str(tmp_path / "file.yaml")]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("name", ["action", "operator", "pipeline", "sharded"])
def test_shellcheck_reports_no_problem(name: str) -> None:
    shell_scripts = scripts(yaml.safe_load(CI_FILES[name][0]))
    assert shell_scripts
    for script in shell_scripts:
        program = Path(sys.executable).with_name("shellcheck")
        result = subprocess.run([program, "--shell=bash", "-"], input=script, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("text", [MINIMAL_WORKFLOW, SHARDED_WORKFLOW, PIPELINE])
def test_an_example_is_short(text: str) -> None:
    assert len(text.splitlines()) <= 32


def test_only_actions_of_github_are_used() -> None:
    for text, version in ((ACTION.read_text(), r"[0-9a-f]{40}"), (SHARDED_WORKFLOW + OPERATOR_WORKFLOW, r"v\d+")):
        used_actions = re.findall(r"uses: ([^\s,}]+)", text)
        assert used_actions and all(re.fullmatch(rf"actions/[a-z/-]+@{version}", action) for action in used_actions)


def test_the_suite_is_installed_from_one_place_until_there_is_a_release() -> None:
    assert "pip install grove" not in PAGE.read_text() and PAGE.read_text().count("grove-conformance==") == 1
    assert len(set(re.findall(r"SUITE: (.*)", SHARDED_WORKFLOW + OPERATOR_WORKFLOW + PIPELINE))) == 1
    [install] = [step["run"] for step in action_steps() if step.get("id") == "install"]
    assert '--require-hashes -r "$SUITE/requirements.lock"' in install


def test_every_input_is_used_and_no_script_contains_one() -> None:
    document = yaml.safe_load(ACTION.read_text())
    for name in document["inputs"]:
        assert f"inputs.{name}" in yaml.safe_dump(document["runs"]), name
    assert not [step for step in action_steps() if "${{" in step.get("run", "")]


@pytest.mark.parametrize(("exit_code", "has_report"), [(0, True), (1, True), (4, False)])
def test_the_action_has_the_exit_code_and_the_verdict_of_the_run(
    tmp_path: Path, exit_code: int, has_report: bool
) -> None:
    (tmp_path / "grove-conformance").write_text(FAKE_SUITE)
    (tmp_path / "grove-conformance").chmod(0o755)
    files = {"GITHUB_OUTPUT": tmp_path / "output", "GITHUB_STEP_SUMMARY": tmp_path / "summary"}
    [run] = [step for step in action_steps() if step.get("id") == "run"]
    inputs = {"implementation": "it's mine.yaml", "shard": "1/3"}
    inputs["arguments"] = "--profile=core\r\n\n--set=a=$(touch made) and *\n"
    variables = {name: inputs.get(words.split(".")[1].rstrip(" }"), "") for name, words in run["env"].items()}
    variables |= {name: str(path) for name, path in files.items()}
    variables |= {"RUNNER_TEMP": str(tmp_path), "GITHUB_ACTION": "one", "CODE": str(exit_code)}
    variables |= {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
    result = subprocess.run([*bash, run["run"]], env=variables, cwd=tmp_path, capture_output=True, text=True)
    assert result.stdout == "the verdict\n::error title=CORE-001::wrong\n" * has_report
    folder = f"{tmp_path}/conformance-reports/one"
    arguments = ["run", "--implementation", "it's mine.yaml", "--report-dir", folder, "--shard", "1/3"]
    arguments += ["--profile=core", "--set=a=$(touch made) and *"]
    assert yaml.safe_load((tmp_path / "arguments.json").read_text()) == arguments
    assert result.returncode == exit_code and not (tmp_path / "made").exists()
    outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    assert outputs == {"exit-code": str(exit_code)} | ({"report": f"{folder}/r1"} if has_report else {})
    summary = "the verdict" if has_report else "what to correct"
    assert files["GITHUB_STEP_SUMMARY"].read_text() == f"```text\n{summary}\n```\n"
    assert (summary in result.stderr) != has_report


def run_operator_step(job: str, words: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the step that contains `words` in a job of the Go operator's workflow, with a fake suite."""
    [script] = [
        step["run"] for step in yaml.safe_load(OPERATOR_WORKFLOW)["jobs"][job]["steps"] if words in step.get("run", "")
    ]
    (folder / "grove-conformance").write_text(FAKE_SUITE)
    (folder / "grove-conformance").chmod(0o755)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "RUNNER_TEMP": str(folder), **variables}
    bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(bash, env=environment, cwd=folder, capture_output=True, text=True)


def test_the_crds_of_operator_and_scheduler_are_copied(tmp_path: Path) -> None:
    for component in ("operator", "scheduler"):
        folder = tmp_path / component / "api" / "core" / "v1alpha1" / "crds"
        folder.mkdir(parents=True)
        (folder / f"{component}.yaml").touch()
    assert run_operator_step("judge", "crds/*.yaml", tmp_path).returncode == 0
    assert {path.name for path in (tmp_path / "crds").iterdir()} == {"operator.yaml", "scheduler.yaml"}


@pytest.mark.parametrize("has_baseline", [False, True])
@pytest.mark.parametrize(
    ("side", "exit_code", "expected_exit_code"),
    [("head", 0, 0), ("head", 1, 1), ("head", 7, 7), ("base", 1, 0), ("base", 7, 0), ("base", 3, 3), ("base", 4, 4)],
)
def test_a_new_failure_of_the_operator_fails_the_job(
    tmp_path: Path, has_baseline: bool, side: str, exit_code: int, expected_exit_code: int
) -> None:
    if has_baseline:
        (tmp_path / ".github").mkdir()
        (tmp_path / ".github" / "conformance.yaml").touch()
    result = run_operator_step("judge", "grove-conformance run", tmp_path, SIDE=side, CODE=str(exit_code))
    assert result.returncode == expected_exit_code, result.stderr
    assert ("::error title=CORE-001::wrong" in result.stdout) == (side == "head")
    arguments = yaml.safe_load((tmp_path / "arguments.json").read_text())
    assert arguments[:5] == ["run", "--implementation", "grove-operator", "--set", f"binary={tmp_path}/grove-operator"]
    assert arguments[-2:] == (
        ["--baseline", ".github/conformance.yaml"] if has_baseline else ["--report-dir", f"reports/{side}"]
    )


@pytest.mark.parametrize(("exit_code", "expected_exit_code"), [(0, 0), (4, 4), (5, 5), (6, 0), (10, 10)])
def test_a_regression_of_the_operator_fails_the_comparison(
    tmp_path: Path, exit_code: int, expected_exit_code: int
) -> None:
    variables = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary"), "CODE": str(exit_code)}
    result = run_operator_step("compare", "report compare", tmp_path, **variables)
    assert result.returncode == expected_exit_code, result.stderr
    comment = "the verdict\n" if exit_code != 4 else "### ❌ Conformance: nothing to compare: the job judge says why\n"
    assert (tmp_path / "comment.md").read_text() == (tmp_path / "summary").read_text() == comment


def test_each_requirement_of_the_lock_has_a_version_and_digests() -> None:
    text = (PROJECT / "requirements.lock").read_text().replace("\\\n", "")
    locked = [
        re.fullmatch(r"([a-z0-9-]+)==\S+(?: ;[^-]*)?((?: +--hash=sha256:[0-9a-f]{64})+) *", line)
        for line in text.splitlines()
    ]
    assert len(locked) > 50 and all(locked), [line for line in text.splitlines() if "--hash" not in line]
    pinned_names = {match[1] for match in locked if match}
    build = tomllib.loads((PROJECT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert build == ["hatchling"] and {"hatchling", "editables"} <= pinned_names


def test_all_parts_of_the_image_are_pinned_by_digests() -> None:
    text = re.sub(r"\s*\\\n\s*", " ", CONTAINERFILE.read_text())
    assert re.findall(r"^(?:FROM|ARG) .*", text, re.M) == ["ARG BASE", "FROM ${BASE} AS wheels", "FROM ${BASE}"]
    first_command, *other_commands = re.findall(r"pip \w+ [^&\n]*", text)
    assert (
        "--require-hashes" in first_command
        and "--only-binary :all:" in first_command
        and "/tmp/requirements.lock" in first_command
    )
    assert other_commands and all("--no-index" in command for command in other_commands)
    assert "--hash" not in text and "python:" not in text and "@sha256:" in PAGE.read_text()


def test_the_image_context_has_all_files_of_the_wheel(tmp_path: Path) -> None:
    allowed_names = [line[1:] for line in (PROJECT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for name in allowed_names:
        if (PROJECT / name).is_dir():
            shutil.copytree(PROJECT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            shutil.copy(PROJECT / name, tmp_path / name)
    contents = []
    for source in (PROJECT, tmp_path):
        wheel_folder = tmp_path / "wheels" / str(len(contents))
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", wheel_folder], cwd=source, check=True
        )
        [wheel] = wheel_folder.glob("*.whl")
        contents.append({file.filename: file.CRC for file in zipfile.ZipFile(wheel).infolist()})
    assert contents[0] == contents[1] and len(contents[0]) > 100
