"""Mixes: the variation among the pods of a cluster that do not name a behavior. Pure functions.

The random values of a pod are taken from its uid: the first byte decides whether the pod fails, and each following byte
determines a time. Therefore a pod has the same values in jq, as KWOK computes them, and here, whereas a recreated pod
has different values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from conformance import documents
from conformance.documents import Document
from conformance.errors import UsageError

BYTE = 256
_DIGITS = "explode | map(if . > 96 then . - 87 else . - 48 end) | .[0] * 16 + .[1]"
MAX_TIMES = 3
"""The number of bytes of a uid before its first hyphen, without the first byte."""


@dataclass(frozen=True)
class PodFailure:
    """A behavior with these parameters that one in `one_of` pods has in addition to the mix. The first byte of the
    pod's uid is at least `first_byte` and less than `end`."""

    behavior: str
    one_of: int
    parameters: Mapping[str, str]
    first_byte: int

    @property
    def end(self) -> int:
        """Return the first value above the range of this failure."""
        return self.first_byte + BYTE // self.one_of

    @property
    def jq_condition(self) -> str:
        """Return the jq expression that is true for a pod with this failure."""
        return f"({_byte_in_jq(0)} | . >= {self.first_byte} and . < {self.end})"


@dataclass(frozen=True)
class Mix:
    """The mix that replaces the behavior of the same name. `times` maps a parameter to its minimum and maximum in
    seconds."""

    about: str
    times: Mapping[str, tuple[int, int]]
    failures: tuple[PodFailure, ...]

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
        return next((candidate for candidate in self.failures if candidate.first_byte <= byte < candidate.end), None)


def read(document: Document, parameters: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, Mix]]:
    """Yield the name and the mix for each entry of `mixes` in the file of behaviors. `parameters` maps a behavior to
    its parameters with their defaults. Raises UsageError if an entry is invalid."""
    for name, entry in document.value.get("mixes", {}).items():
        field = ("mixes", name)
        parameters_of_behavior = _parameters(document, field, name, parameters)
        times = {}
        for parameter, (low, high) in entry["times"].items():
            location = document.location(*field, "times", parameter)
            if parameter not in parameters_of_behavior:
                raise UsageError(
                    "unknown parameter", where=location, hint=documents.suggestion(parameter, parameters_of_behavior)
                )
            if low > high:
                raise UsageError(f"{low} is more than {high}", where=location, hint="give the least first")
            times[parameter] = (low, high)
        yield name, Mix(entry["about"], times, tuple(_failures(document, field, entry["failures"], parameters)))


def _failures(
    document: Document,
    field: documents.Field,
    entries: list[dict[str, object]],
    parameters: Mapping[str, Mapping[str, str]],
) -> Iterator[PodFailure]:
    next_byte = 0
    for number, entry in enumerate(entries):
        entry_field = (*field, "failures", number)
        behavior, own_parameters = str(entry["behavior"]), entry["parameters"]
        parameters_of_behavior = _parameters(document, (*entry_field, "behavior"), behavior, parameters)
        assert isinstance(own_parameters, dict) and isinstance(entry["oneOf"], int), "the schema says so"
        for parameter in own_parameters:
            if parameter not in parameters_of_behavior:
                hint = documents.suggestion(parameter, parameters_of_behavior)
                raise UsageError(
                    "unknown parameter", where=document.location(*entry_field, "parameters", parameter), hint=hint
                )
        failure = PodFailure(behavior, entry["oneOf"], {**parameters_of_behavior, **own_parameters}, next_byte)
        if failure.end > BYTE:
            raise UsageError(
                "more pods fail than there are", where=document.location(*entry_field, "oneOf"), hint="raise it"
            )
        yield failure
        next_byte = failure.end


def _parameters(
    document: Document, field: documents.Field, behavior: str, parameters: Mapping[str, Mapping[str, str]]
) -> Mapping[str, str]:
    if behavior not in parameters:
        hint = documents.suggestion(behavior, parameters)
        raise UsageError(f"unknown behavior {behavior!r}", where=document.location(*field), hint=hint)
    return parameters[behavior]


def _byte_in_jq(index: int) -> str:
    return f"(.metadata.uid[{2 * index}:{2 * index + 2}] | {_DIGITS})"


def _random_byte(uid: str, index: int) -> int:
    return int(uid[2 * index : 2 * index + 2], 16)
