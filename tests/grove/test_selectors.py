"""Equivalent label selectors have one normal form."""

from __future__ import annotations

import pytest

from conformance.grove.selectors import normal

RIGHT = "app.kubernetes.io/part-of=s,grove.io/podclique=s-0-a"


@pytest.mark.parametrize(
    "same",
    [
        RIGHT,
        "grove.io/podclique=s-0-a,app.kubernetes.io/part-of=s",
        "app.kubernetes.io/part-of==s, grove.io/podclique = s-0-a",
        "grove.io/podclique in (s-0-a),app.kubernetes.io/part-of in ( s )",
        f"{RIGHT},app.kubernetes.io/part-of=s",
    ],
)
def test_equivalent_selectors_are_equal(same: str) -> None:
    assert normal(same) == RIGHT


@pytest.mark.parametrize(
    "other",
    [
        "",
        "app.kubernetes.io/part-of=s",
        f"{RIGHT},more=x",
        f"{RIGHT},more",
        RIGHT.replace("s-0-a", "s-0-b"),
        RIGHT.replace("=s-", "!=s-"),
        "app.kubernetes.io/part-of=s,grove.io/podclique in (s-0-a,s-0-b)",
        "app.kubernetes.io/part-of=s,grove.io/podclique notin (s-0-a)",
    ],
)
def test_other_selectors_are_not(other: str) -> None:
    assert normal(other) != RIGHT
