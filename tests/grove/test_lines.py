"""Tests of Grove's release lines and releases."""

from __future__ import annotations

import pytest

from conformance.grove import lines


def test_releases_are_in_order() -> None:
    releases = ["v0.1.0-alpha.8", "v0.1.0-alpha.10-rc1", "v0.1.0-alpha.10", "v0.1.0-alpha.12-rc1", "v0.1.0-alpha.12"]
    releases += ["v0.1.0", "v0.2.0-alpha.1"]
    orders = [lines.sort_key(release) for release in releases]
    assert None not in orders
    assert orders == sorted(orders, key=lambda order: order or ())


@pytest.mark.parametrize(
    ("contract", "expected"),
    [
        ("names", ("names", "v0.1.0-alpha.12-rc1")),
        ("maps", ("maps", "v0.1.0-alpha.13")),
        ("v0.1.0-alpha.9", ("names", "v0.1.0-alpha.9")),
        ("v0.1.0-alpha.12", ("maps", "v0.1.0-alpha.12")),
        ("v0.2.0", ("maps", "v0.2.0")),
    ],
)
def test_a_release_belongs_to_a_line(contract: str, expected: tuple[str, str]) -> None:
    assert lines.line_and_release(contract) == expected


@pytest.mark.parametrize(
    ("begin", "until", "release", "expected"),
    [
        ("v0.1.0-alpha.12", "", "v0.1.0-alpha.12-rc1", False),
        ("v0.1.0-alpha.12", "", "v0.1.0-alpha.13", True),
        ("v0.1.0-alpha.8", "v0.1.0-alpha.12-rc1", "v0.1.0-alpha.12", False),
        ("v0.1.0-alpha.8", "v0.1.0-alpha.12-rc1", "v0.1.0-alpha.8", True),
        ("GREP-393", "", "v0.1.0-alpha.8", True),
        ("v0.1.0-alpha.12", "", "", True),
    ],
)
def test_since_and_until_count(begin: str, until: str, release: str, expected: bool) -> None:
    assert lines.holds(begin, until, release) == expected
