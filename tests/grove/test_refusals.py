"""Tests that field errors are read from any message of a rejected request."""

from __future__ import annotations

import pytest

from conformance.grove.refusals import FieldError, field_errors

DENIED = 'admission webhook "pcs.validating.webhooks.grove.io" denied the request: '


def texts(message, **details):
    return [str(error) for error in field_errors(message, details)]


@pytest.mark.parametrize(
    ("message", "read"),
    [
        ("spec.a: Required value", ["spec.a Required"]),
        ("spec.a[0].b: Required value: say it", ["spec.a.b Required"]),
        ('[a.b: Invalid value: "x": no, c[1]: Duplicate value: ["x"]]', ["a.b Invalid", "c Duplicate"]),
        ("spec.x: Forbidden: not allowed, spec.y: Not found", ["spec.x Forbidden", "spec.y NotFound"]),
        (
            'metadata.annotations.grove.io/mnnvl-group: Invalid value: "": empty',
            ["metadata.annotations.grove.io/mnnvl-group Invalid"],
        ),
        ('a: Unsupported value: "x": supported values: "y"', ["a NotSupported"]),
        ("panic: runtime error: index out of range [recovered]", []),
    ],
)
def test_rejections_of_a_webhook_are_read_from_its_message(message, read):
    assert texts(DENIED + message) == read


def test_rejections_of_a_schema_are_read_from_its_causes():
    causes = [
        {"reason": "FieldValueTypeInvalid", "field": "spec.template.cliques[0].spec"},
        {"reason": "FieldValueInvalid", "field": ".spec.replicas"},
        {"reason": "Unheard", "field": "x"},
        "odd",
    ]
    assert texts("a: Required value", causes=causes) == ["spec.template.cliques.spec Invalid", "spec.replicas Invalid"]


def test_the_end_of_a_path_is_compared_by_whole_steps():
    error = FieldError("spec.template.cliques.spec.podSpec.spec.nodeName", "Invalid")
    assert error.is_at("nodeName") and error.is_at("spec.nodeName") and not error.is_at("Name")
