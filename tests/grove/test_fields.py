"""Tests that reading a malformed object never raises an exception and never returns a value that could be correct."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.grove import fields, gang_maps, pods
from conformance.grove.expected import expected
from conformance.grove.expected_pods import index
from conformance.grove.variables import environment
from conformance.history.record import Record
from conformance.history.summary import state

KEYS = ("metadata", "labels", "spec", "status", "conditions", "containers", "env", "name", "podgroups")
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "labels", "spec", "status", "conditions", "containers", "env", "name", "podgroups"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("digits", "number"),
    [("0", 0), ("007", 7), (str((1 << 64) - 1), (1 << 64) - 1)]
    + [(text, None) for text in ("", "-1", "1.0", "²", "١", " 1", "9" * 21, "9" * 5000)],
)
def test_only_a_number_that_kubernetes_can_represent_is_one(digits: str, number: int | None) -> None:
    assert fields.decimal(digits) == number


def test_an_epoch_that_is_no_number_comes_first() -> None:
    entries = gang_maps.entries({"spec": {"entries": [{"epoch": epoch} for epoch in ("2", "9" * 5000, "²", "1")]}})
    assert [entry.epoch for entry in entries][2:] == ["1", "2"]


def test_indices_that_are_no_numbers_are_left_out() -> None:
    (entry,) = gang_maps.entries(
        {"spec": {"entries": [{"epoch": "1", "pcsgReplicaIndices": {"g": [1, "0", None, 0]}}]}}
    )
    assert gang_maps.entries({"spec": {"entries": [{"epoch": "1", "pcsgReplicaIndices": {"g": [1, 0]}}]}}) == (entry,)


@pytest.mark.parametrize(("version", "revision"), [("12", 12), ("9" * 5000, 0), ("²", 0), ("", 0)])
def test_a_version_that_is_no_number_is_no_revision(version: str, revision: int) -> None:
    record = Record(
        seq=1, at=0, wall=0, kind="ADDED", resource="pods", namespace="n", name="x", uid="u", version=version, raw=b"{}"
    )
    assert record.revision == revision


@given(JUNK)
def test_any_document_can_be_read(document):
    for read in (fields.name, fields.labels, fields.finalizers, fields.controller, fields.terminating):
        read(document)
    for read in (pods.gates, pods.phase, pods.node, pods.is_ready, index):
        read(document)
    environment(document, document)
    expected(document)


@given(JUNK, st.sampled_from(["pods", "podgangs", "podcliques", "podcliquesets", "nodes", "services"]))
def test_any_record_has_a_state_in_words(document, resource):
    record = Record(
        seq=1, at=0, wall=0, kind="ADDED", resource=resource, namespace="n", name="x", uid="u", version="1", raw=b"{}"
    )
    if isinstance(document, dict):
        record.__dict__["object"] = document
    assert state(record)


@pytest.mark.parametrize("status", [None, {}, {"readyReplicas": "2"}, {"readyReplicas": True}])
def test_a_missing_or_mistyped_number_equals_no_number(status):
    wrong = {"status": status}
    assert fields.number(wrong, "status", "readyReplicas") is None
    assert fields.count(wrong, "status", "readyReplicas") == 0


def test_paths_go_through_lists():
    document = {"a": [{"b": 1}, {"b": 2}]}
    assert fields.number(document, "a", 1, "b") == 2
    assert fields.number(document, "a", 5, "b") is None


def test_conditions_by_type():
    document = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert fields.condition_is(document, "Ready") == "True"
    assert fields.condition_is(document, "Other") == ""
