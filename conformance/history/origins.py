"""What is known of the objects of a history from who wrote them, whatever they say of themselves.

Anybody can put a label, an annotation or a condition on an object. So a rule that leaves an object out asks the
suite's own requests, by the uid in the API server's answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from conformance.grove.fields import label, text
from conformance.grove.labels import BY_HAND


class ByHand(msgspec.Struct, frozen=True):
    """An object that the suite created instead of an operator, as it sent it: its labels, and whether it is a Pod that
    was created with a node."""

    labels: dict[str, str] = {}
    bound: bool = False

    @property
    def scenario(self) -> str:
        """Return the scenario that the object was created for."""
        return self.labels.get(BY_HAND, "")


class Origins(msgspec.Struct):
    """Origins of objects, by uid."""

    by_hand: dict[str, ByHand] = {}

    def sent(self, request: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Note an object that the suite has created: what it sent, and what the API server answered."""
        if label(request, BY_HAND):
            made = ByHand(dict(request["metadata"]["labels"]), bool(text(request, "spec", "nodeName")))
            self.by_hand[text(answer, "metadata", "uid")] = made
