"""Tests that reading an excessive file ends soon, with a one-line error that names the exceeded limit and the
location."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from conformance import bounded, documents
from conformance.errors import UsageError
from conformance.implementation import installation

ALIAS_BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 40))
MERGE_BOMB = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 40)
)
EXCESSIVE_FILES = {
    "aliases": (ALIAS_BOMB, "data.yaml:1: stands for more than 1,000,000 values — make it smaller"),
    "merged aliases": (MERGE_BOMB, "data.yaml:1: stands for more than 1,000,000 values — make it smaller"),
    "an alias of itself": ("a: &a [*a]\n", "data.yaml:1: has an alias that holds itself — write it out"),
    "nested": ("a: " + "[" * 200 + "]" * 200 + "\n", "data.yaml:1: is more than 100 levels deep — make it flatter"),
    "nested blocks": ("\n".join(" " * n + "a:" for n in range(900)), "is more than 100 levels deep — make it flatter"),
    "nested by aliases": (
        "".join(f"a{n}: &a{n} {'{b: {b: {b: ' + (f'*a{n - 1}' if n else '1') + '}}}'}\n" for n in range(60)),
        "is more than 100 levels deep",
    ),
    "nested beyond any stack": ("a: " + "[" * 500_000 + "\n", "data.yaml:1: is more than 100 levels deep"),
    "nested lists": ("- " * 500_000 + "\n", "data.yaml:1: is more than 100 levels deep"),
    "NUL": ('a: "x\\0y"\n', "data.yaml:1: a: holds a NUL character — remove it"),
    "NUL in a key": ('"x\\0y": 1\n', "data.yaml:1: holds a NUL character — remove it"),
    "infinity": ("a: .inf\n", "data.yaml:1: a: is not a finite number: inf — give a number"),
    "no number": ("a: [1, .nan]\n", "data.yaml:1: a[1]: is not a finite number: nan"),
    "digits": ("a: " + "9" * 5000 + "\n", "data.yaml:1: a: cannot be read: Exceeds the limit"),
    "a day of no calendar": ("a: 2027-13-45\n", "data.yaml:1: a: cannot be read: month must be in 1..12"),
    "a key that is a list": ("? [a]\n: b\n? [a]\n: c\n", "data.yaml:1: a key is not text"),
    "10 MiB": ("a: " + "x" * (10 << 20) + "\n", "data.yaml: is longer than 1 MiB — give a shorter file"),
}


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("text", "message"), EXCESSIVE_FILES.values(), ids=EXCESSIVE_FILES)
def test_an_excessive_file_is_reported_in_one_line(text: str, message: str) -> None:
    Path("data.yaml").write_text(text)
    started_at = time.monotonic()
    with pytest.raises(UsageError) as caught:
        documents.parse(Path("data.yaml"))
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert time.monotonic() - started_at < 20


def test_a_file_without_an_end_is_too_long() -> None:
    with pytest.raises(UsageError, match="is longer than 1 MiB"):
        documents.parse(Path("/dev/zero"))


def test_files_within_the_limits_are_accepted() -> None:
    """Aliases and nesting up to the limit are permitted."""
    Path("data.yaml").write_text("a: &a {x: [1, 2]}\nb: *a\nc: {<<: *a, y: 3}\n")
    assert documents.parse(Path("data.yaml")).value["c"] == {"x": [1, 2], "y": 3}
    nested_lists = "x"
    for _ in range(bounded.MAX_DEPTH - 1):
        nested_lists = f"[{nested_lists}]"
    Path("data.yaml").write_text(f"a: {nested_lists}\n")
    documents.parse(Path("data.yaml"))


@pytest.mark.parametrize("name", ["aliases", "an alias of itself", "nested", "digits", "a day of no calendar"])
def test_manifests_have_the_same_limits(name: str) -> None:
    text = json.dumps({"kind": "CustomResourceDefinition", "metadata": {"name": "a"}})[:-1] + ', "spec": &s {'
    with pytest.raises(UsageError):
        installation.read_manifests(Path("data.yaml"), EXCESSIVE_FILES[name][0], ("CustomResourceDefinition",))
    with pytest.raises(UsageError, match="is not YAML"):
        installation.read_manifests(Path("data.yaml"), text, ("CustomResourceDefinition",))


@pytest.mark.parametrize("metadata", ["null", "[]", "x", "{}"])
def test_a_manifest_without_a_name_is_reported_in_one_line(metadata: str) -> None:
    text = f"kind: CustomResourceDefinition\nmetadata: {metadata}\n"
    with pytest.raises(UsageError, match="holds a CustomResourceDefinition without a name"):
        installation.read_manifests(Path("data.yaml"), text, ("CustomResourceDefinition",))
