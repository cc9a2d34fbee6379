"""Mixes: the variation among the pods of a cluster that do not name a behavior. Pure functions.

The random values of a pod are taken from its uid: the first byte decides whether the pod fails, and each following byte
determines a time. Therefore a pod has the same values in jq, as KWOK computes them, and here, whereas a recreated pod
has different values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from conformance.formats import Format, Text

BYTE = 256
_DIGITS = "explode | map(if . > 96 then . - 87 else . - 48 end) | .[0] * 16 + .[1]"


class PodFailure(Format, frozen=True):
    """A behavior with these parameters that one in `one_of` pods has in addition to the mix."""

    behavior: str
    one_of: Annotated[Literal[1, 2, 4, 8, 16, 32, 64, 128, 256], Meta(description="one of so many pods fails")]
    parameters: dict[str, str]


Seconds = Annotated[int, Meta(ge=0, le=999_999)]
Range = Annotated[tuple[Seconds, Seconds], Meta(description="the least and the most seconds, as in [1, 6]")]


class Mix(Format, frozen=True):
    """The mix that replaces the behavior of the same name. `times` maps a parameter to its minimum and maximum in
    seconds."""

    about: Text
    times: Annotated[dict[str, Range], Meta(max_length=3, description="parameter: whole seconds, at least and at most")]
    """As many at most as a uid has bytes before its first hyphen, without the first byte."""
    failures: list[PodFailure]

    def parameters(self) -> dict[str, str]:
        """Return the parameters in the form of jq string contents that compute their random values."""
        return {
            name: rf"\({low} + ({_byte_in_jq(index)} | . * {high - low + 1} / {BYTE} | floor))s"
            for index, (name, (low, high)) in enumerate(self.times.items(), 1)
        }

    def seconds(self, uid: str) -> dict[str, int]:
        """Return the times of a pod, by parameter."""
        return {
            name: low + _random_byte(uid, index) * (high - low + 1) // BYTE
            for index, (name, (low, high)) in enumerate(self.times.items(), 1)
        }

    def failure(self, uid: str) -> PodFailure | None:
        """Return the failure of a pod; None if it has none."""
        byte = _random_byte(uid, 0)
        return next((failure for failure, first_bytes in self.shares() if byte in first_bytes), None)

    def conditions(self) -> Iterator[tuple[PodFailure, str]]:
        """Yield each failure with the jq expression that is true for the pods that have it."""
        for failure, first_bytes in self.shares():
            yield failure, f"({_byte_in_jq(0)} | . >= {first_bytes.start} and . < {first_bytes.stop})"

    def shares(self) -> Iterator[tuple[PodFailure, range]]:
        """Yield each failure with the first bytes of the UIDs of the pods that have it."""
        start = 0
        for failure in self.failures:
            end = start + BYTE // failure.one_of
            yield failure, range(start, end)
            start = end


def _byte_in_jq(index: int) -> str:
    return f"(.metadata.uid[{2 * index}:{2 * index + 2}] | {_DIGITS})"


def _random_byte(uid: str, index: int) -> int:
    return int(uid[2 * index : 2 * index + 2], 16)
