"""Tests of comparisons whose sides are git refs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from conformance import cli
from conformance.cluster.progress import report_nothing
from conformance.errors import UsageError
from conformance.scale.compare.refs import Repository, fill_settings

COUNTING_BUILD = "echo built >> ../count; cp source program"


def git(repo: Path, *arguments: str) -> None:
    command = ["git", "-C", str(repo), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    path = tmp_path / "repo"
    path.mkdir()
    git(path, "init", "-qb", "main")
    for branch, text in (("main", "one"), ("change", "two")):
        if branch != "main":
            git(path, "checkout", "-qb", branch)
        (path / "source").write_text(text)
        git(path, "add", "source")
        git(path, "commit", "-qm", text)
    return path


def test_each_commit_is_built_once_in_its_own_work_tree(tmp_path: Path, repo: Path) -> None:
    repository = Repository(repo, tmp_path / "builds", COUNTING_BUILD)
    for ref, text in (("main", "one"), ("change", "two"), ("HEAD", "two"), ("main", "one")):
        tree = repository.build_commit(repository.commit(ref), report_nothing)
        assert (tree / "program").read_text() == text
    assert (tmp_path / "builds" / "count").read_text().split() == ["built", "built"]
    other_repository = Repository(repo, tmp_path / "builds", "true")
    other_repository.build_commit(other_repository.commit("main"), report_nothing)
    assert len(list((tmp_path / "builds").glob("*.built"))) == 3
    status = subprocess.run(["git", "-C", str(repo), "status", "--porcelain"], capture_output=True, check=True)
    assert status.stdout == b""


def test_a_work_tree_that_was_not_completed_is_replaced(tmp_path: Path, repo: Path) -> None:
    repository = Repository(repo, tmp_path / "builds", "")
    commit = repository.commit("main")
    tree = repository.build_commit(commit, report_nothing)
    (tmp_path / "builds" / f"{commit}.complete").unlink()
    (tree / "source").unlink()
    assert (repository.build_commit(commit, report_nothing) / "source").read_text() == "one"


def test_a_failed_build_is_reported_with_its_last_line_and_retried(tmp_path: Path, repo: Path) -> None:
    repository = Repository(repo, tmp_path / "builds", "echo no compiler; exit 3")
    for _ in range(2):
        with pytest.raises(UsageError, match=r"exit code 3: no compiler — see .*\.log"):
            repository.build_commit(repository.commit("main"), report_nothing)


def test_unknown_refs_and_non_repositories_are_reported(tmp_path: Path, repo: Path) -> None:
    with pytest.raises(UsageError, match='unknown ref "mian"'):
        Repository(repo, tmp_path, "").commit("mian")
    with pytest.raises(UsageError, match="unknown ref"):
        Repository(repo, tmp_path, "").commit("--all")
    with pytest.raises(UsageError, match="is not a git repository"):
        Repository(tmp_path, tmp_path, "").commit("main")


def test_parameters_may_refer_to_the_work_tree() -> None:
    settings = {"binary": "${worktree}/bin/op", "qps": "5"}
    assert fill_settings(settings, Path("/trees/c")) == {"binary": "/trees/c/bin/op", "qps": "5"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--build", "make"], "belong to --repo"),
        (["--repo", "."], "--repo needs --implementation"),
        (["--repo", "none", "--implementation", "reference-plain"], "is not a git repository"),
    ],
)
def test_mistakes_are_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    command = ["scale", "compare", "--base", "main", "--head", "main", "--dir", str(tmp_path), *arguments]
    assert cli.run(lambda: cli.app(command, standalone_mode=False)) == 4
    assert message in capsys.readouterr().err
