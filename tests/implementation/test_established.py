"""Tests of the errors that report CRDs that are not established in time. The tests need no cluster."""

from __future__ import annotations

import msgspec
import pytest

from conformance.errors import ClusterTooSlow, HarnessError
from conformance.implementation import installation


@pytest.mark.parametrize(
    ("accepted", "error", "reason"),
    [("True", ClusterTooSlow, "no condition yet"), ("False", HarnessError, "in use")],
)
def test_a_crd_that_is_not_established_in_time_is_explained(
    accepted: str, error: type[HarnessError], reason: str
) -> None:
    """A name that is already in use is a mistake in the manifest. Any other delay means that the API server is too
    slow."""
    conditions = [{"type": "NamesAccepted", "status": accepted, "message": "" if accepted == "True" else "in use"}]
    crd = {"metadata": {"name": "gadgets.example.com"}, "status": {"conditions": conditions}}
    crd_watch = installation._EstablishmentWatch(["gadgets.example.com"])
    crd_watch.on_event("MODIFIED", installation._CRD_DECODER.decode(msgspec.json.encode(crd)))
    failure = crd_watch.establishment_error(31)
    assert type(failure) is error
    assert f"CRDs are not established after 31 s: gadgets.example.com: {reason}" in str(failure)
