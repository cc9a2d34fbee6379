"""Tests that reading a malformed object never raises an exception and never returns a value that could be correct."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.grove import fields, pods
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
