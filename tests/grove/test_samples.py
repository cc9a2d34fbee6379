"""Tests that the reference admits the sample manifests, and that the behaviors which their pods request exist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.cluster import pod_behaviors
from conformance.errors import UsageError
from conformance.grove import samples
from conformance.validate import VALIDATORS
from tests.reference import apiserver


@pytest.mark.parametrize("name", sorted(samples.load()))
def test_a_sample_is_admitted_without_a_warning(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    documents: list[dict[str, Any]] = list(yaml.safe_load_all(samples.path(name).read_text("utf-8")))
    levels = {
        document["metadata"]["name"]: [level["domain"] for level in document["spec"]["levels"]]
        for document in documents
        if document["kind"] == "ClusterTopologyBinding"
    }
    monkeypatch.setattr(apiserver, "LEVELS", levels)
    for manifest in documents:
        if not manifest["apiVersion"].startswith("grove.io/"):
            continue
        reply = apiserver.ask(manifest)
        assert (reply.status, reply.warnings) == (201, ()), reply
        assert not list(pod_behaviors.mistakes_of_set(manifest))
    assert [document["kind"] for document in documents].count("PodCliqueSet") == (not samples.load()[name].plain)


def test_every_manifest_is_listed() -> None:
    folder = samples.path("serving").parent
    assert {path.stem for path in folder.glob("*.yaml")} == {*samples.load(), "samples"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing: {about: Nothing., nodes: [tiny]}", "samples.yaml:1: nothing: has no file — add nothing.yaml"),
        ("mine: {about: Mine.}", 'samples.yaml:1: mine: the field "nodes" is missing'),
        ("mine: {about: Mine., nodes: [tinny]}", "mine.nodes: unknown node profile 'tinny'"),
    ],
)
def test_a_wrong_list_of_samples_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "samples.yaml").write_text(text)
    (tmp_path / "mine.yaml").touch()
    (validate,) = (check for _, pattern, check in VALIDATORS if pattern == "samples/samples.yaml")
    with pytest.raises(UsageError) as caught:
        validate(tmp_path / "samples.yaml")
    assert message in str(caught.value)
