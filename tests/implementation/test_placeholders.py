"""Tests of placeholders such as `${set.binary}`: known names, suggestions for unknown names, and inserted values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.implementation import placeholders
from conformance.implementation.placeholders import UnknownPlaceholder


def error_message(text: str, **arguments: object) -> str:
    with pytest.raises(UnknownPlaceholder) as caught:
        placeholders.check(text, **arguments)
    return f"{caught.value} — {caught.value.hint}"


def test_known_names_are_accepted() -> None:
    placeholders.check(
        "${kubeconfig} ${python} ${project} ${here} ${directory} ${schedulerName} ${certificates} ${ca} "
        "${port.health} ${file.config.yaml} ${set.binary} $HOME $${plain} $",
        files=["config.yaml"],
        parameters=["binary"],
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${kubeconfg}", '${kubeconfg} is not known — did you mean "kubeconfig"?'),
        ("${set.binry}", '${set.binry}: there is no such parameter — did you mean "binary"?'),
        ("${file.other}", "${file.other}: there is no such file in this process — known: config.yaml"),
        ("${ports.health}", '${ports.health} is not known — did you mean "port.health"?'),
        ("${port.}", "${port.}: a port needs a name — write for example ${port.health}"),
        ("${kubeconfig", "a placeholder is not closed — close it with }, or write $${ for a plain ${"),
    ],
)
def test_an_unknown_name_is_reported_with_a_suggestion(text: str, expected: str) -> None:
    assert error_message(text, files=["config.yaml"], parameters=["binary"]) == expected


def test_files_belong_to_a_process() -> None:
    assert "files belong to a process" in error_message("${file.x}", process=False)


def test_values_are_inserted_once_and_escaped_placeholders_are_kept() -> None:
    values = {"python": "py", "set.x": "${python}"}
    assert placeholders.expand("${python} ${set.x} $${python} $x", values.__getitem__) == "py ${python} ${python} $x"


@given(st.text())
def test_a_text_without_placeholders_is_not_changed(text: str) -> None:
    plain_text = text.replace("${", "$")
    assert placeholders.expand(plain_text, lambda name: "never") == plain_text
