"""Tests that the suite chooses the kubeconfig and the context as kubectl does, and leaves no copy of credentials."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.cluster.chosen_kubeconfig import choose
from conformance.cluster.state import StateRoot
from conformance.errors import UsageError
from kube import config


def write_kubeconfig(folder: Path, *names: str, current_context: str = "") -> Path:
    """Write a kubeconfig with a context, a cluster and a user for each name."""
    folder.mkdir(exist_ok=True)
    document: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "current-context": current_context or names[0]}
    document["clusters"] = [{"name": n, "cluster": {"server": f"http://{n}.example"}} for n in names]
    document["users"] = [{"name": n, "user": {"token": f"token-of-{n}"}} for n in names]
    document["contexts"] = [{"name": n, "context": {"cluster": n, "user": n}} for n in names]
    path = folder / "config"
    path.write_text(yaml.safe_dump(document))
    return path


def server(path: Path) -> str:
    return config.load(path).server


@pytest.fixture(autouse=True)
def no_kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def test_an_option_takes_precedence_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: StateRoot
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "other", "other")))
    path = write_kubeconfig(tmp_path / "mine", "mine")
    with choose(path, "") as selected_kubeconfig:
        assert (selected_kubeconfig.path, selected_kubeconfig.options) == (path, ("--kubeconfig", str(path)))
    with choose(None, "") as selected_kubeconfig:
        assert server(selected_kubeconfig.path) == "http://other.example"
        assert selected_kubeconfig.options == ("--kubeconfig", str(tmp_path / "other/config"))


def test_the_usual_file_is_the_last_resort(tmp_path: Path, state: StateRoot) -> None:
    with pytest.raises(UsageError, match=r"home/.kube/config: no such file — give --kubeconfig FILE, or set"):
        choose(None, "").__enter__()
    (tmp_path / "home").mkdir()
    write_kubeconfig(tmp_path / "home/.kube", "usual")
    with choose(None, "") as selected_kubeconfig:
        assert server(selected_kubeconfig.path) == "http://usual.example"


def test_another_context_is_current_in_a_temporary_copy(tmp_path: Path, state: StateRoot) -> None:
    path = write_kubeconfig(tmp_path / "mine", "a", "b")
    with choose(path, "b") as selected_kubeconfig:
        assert selected_kubeconfig.path != path and server(selected_kubeconfig.path) == "http://b.example"
        assert selected_kubeconfig.options == ("--kubeconfig", str(path), "--context", "b")
        assert stat.S_IMODE(selected_kubeconfig.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(selected_kubeconfig.path.parent.stat().st_mode) == 0o700
        assert "token-of-a" not in selected_kubeconfig.path.read_text(), "only what the context needs is copied"
    assert list(selected_kubeconfig.path.parent.iterdir()) == []


def test_the_next_command_removes_the_copy_of_a_killed_command(tmp_path: Path, state: StateRoot) -> None:
    path = write_kubeconfig(tmp_path / "mine", "a", "b")
    folder = state.root / "kubeconfigs"
    folder.mkdir(parents=True)
    for name in (
        f"{os.getpid()}_1.0_abc",
        f".{os.getpid()}_1.0_abc.def",
    ):  # the pid of this process with another start time
        (folder / name).write_text("secret")
    with choose(path, "b") as first_selection, choose(path, "b") as second_selection:
        assert set(folder.iterdir()) == {first_selection.path, second_selection.path}


def test_several_files_are_merged_and_the_first_takes_precedence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: StateRoot
) -> None:
    first_path, second_path = write_kubeconfig(tmp_path / "1", "a"), write_kubeconfig(tmp_path / "2", "b", "a")
    second_path.write_text(second_path.read_text().replace("http://a.example", "http://wrong.example"))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'none'}:{first_path}:{second_path}")
    with choose(None, "") as selected_kubeconfig:
        assert server(selected_kubeconfig.path) == "http://a.example"
    with choose(None, "b") as selected_kubeconfig:
        assert server(selected_kubeconfig.path) == "http://b.example"
        assert selected_kubeconfig.options == ("--context", "b")


def test_relative_paths_in_a_copy_refer_to_the_same_files(tmp_path: Path, state: StateRoot) -> None:
    path = write_kubeconfig(tmp_path / "mine", "a", "b")
    document = yaml.safe_load(path.read_text())
    document["clusters"][1]["cluster"]["certificate-authority"] = "pki/ca.crt"
    document["users"][1]["user"] = {"client-key": "/abs/key", "exec": {"command": "./plugin", "apiVersion": "v1"}}
    path.write_text(yaml.safe_dump(document))
    with choose(path, "b") as selected_kubeconfig:
        copied_kubeconfig = yaml.safe_load(selected_kubeconfig.path.read_text())
    assert copied_kubeconfig["clusters"][0]["cluster"]["certificate-authority"] == str(tmp_path / "mine/pki/ca.crt")
    user = copied_kubeconfig["users"][0]["user"]
    assert (user["client-key"], Path(user["exec"]["command"])) == ("/abs/key", tmp_path / "mine/plugin")


@pytest.mark.parametrize(
    ("context", "expected_ending"),
    [
        ("bb", "mine/config: has no context 'bb' — did you mean \"b\"?"),
        ("b", "mine/config: context 'b' names the user 'gone', which does not exist — known: a, b"),
    ],
)
def test_an_unusable_context_is_reported_in_one_line(
    tmp_path: Path, state: StateRoot, context: str, expected_ending: str
) -> None:
    path = write_kubeconfig(tmp_path / "mine", "a", "b")
    path.write_text(path.read_text().replace("user: b", "user: gone"))
    with pytest.raises(UsageError) as caught, choose(path, context):
        pass
    assert str(caught.value).endswith(expected_ending)


def test_an_invalid_kubeconfig_is_reported_in_one_line(tmp_path: Path, state: StateRoot) -> None:
    (tmp_path / "wrong").write_text("a: [")
    with pytest.raises(UsageError, match=r"^wrong:2: is not YAML"), choose(tmp_path / "wrong", ""):
        pass
