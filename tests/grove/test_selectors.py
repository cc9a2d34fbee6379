"""Tests that a selector selects the same objects as in Kubernetes."""

from __future__ import annotations

import pytest

from conformance.grove.selectors import selects

POD = {"metadata": {"labels": {"app.kubernetes.io/part-of": "s", "grove.io/podclique": "s-0-a"}}}
BOTH = "app.kubernetes.io/part-of=s,grove.io/podclique=s-0-a"


@pytest.mark.parametrize(
    "selector",
    [
        BOTH,
        "grove.io/podclique=s-0-a,app.kubernetes.io/part-of=s",
        "app.kubernetes.io/part-of==s, grove.io/podclique = s-0-a",
        "grove.io/podclique in (s-0-a, s-0-b),app.kubernetes.io/part-of in ( s )",
        "grove.io/podclique notin (s-0-b),app.kubernetes.io/part-of",
        "grove.io/podclique!=s-0-b,!more",
        "app.kubernetes.io/part-of=s",
    ],
)
def test_terms_that_hold_select(selector: str) -> None:
    assert selects(selector, POD)


@pytest.mark.parametrize(
    "selector",
    [
        "",
        f"{BOTH},more=x",
        f"{BOTH},more",
        BOTH.replace("s-0-a", "s-0-b"),
        BOTH.replace("=s-", "!=s-"),
        "app.kubernetes.io/part-of=s,grove.io/podclique in (s-0-b,s-0-c)",
        "app.kubernetes.io/part-of=s,grove.io/podclique notin (s-0-a)",
        "!grove.io/podclique",
    ],
)
def test_one_term_that_does_not_hold_is_enough(selector: str) -> None:
    assert not selects(selector, POD)
