"""Tests of how checked values are printed in one line: parts are omitted as a whole, so that the rest is readable."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.evidence.values import one_line

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=12), inner, max_size=6),
    max_leaves=40,
)
POD = {"name": "a-0", "spec": {"containers": [{"name": f"c{n}", "image": "registry.example/a:1"} for n in range(9)]}}


def test_a_short_value_is_whole() -> None:
    assert json.loads(one_line(POD, 1000)) == POD


def test_the_deepest_parts_are_omitted_first() -> None:
    assert one_line(POD, 80) == '{"name":"a-0","spec":{"containers":[{…},{…},{…},{…},{…},{…},{…},{…},… 1 more]}}'
    assert one_line(POD, 40) == '{"name":"a-0","spec":{"containers":[…]}}'
    assert one_line(POD, 10) == "{…}"
    assert one_line({}, 10) == "{}"


def test_a_long_string_in_a_value_is_cut() -> None:
    assert one_line({"message": "x " * 250}, 60) == '{"message":"' + "x " * 19 + 'x…"}'


def test_shortened_names_keep_their_different_ends() -> None:
    names = [f"inference-0-workers-{replica}-{clique}" for replica in (0, 1) for clique in ("decode", "prefill")]
    shortened = ["inference…s-0-decode", "inference…-0-prefill", "inference…s-1-decode", "inference…-1-prefill"]
    assert json.loads(one_line(names, 100)) == shortened


@given(JSON.filter(lambda value: not isinstance(value, str)), st.integers(20, 300))
def test_a_shortened_value_is_balanced(value: object, limit: int) -> None:
    text = one_line(value, limit)
    assert len(text) <= limit
    bare = "".join(character for character in _without_strings(text) if character in "[]{}")
    while bare != (shorter := bare.replace("[]", "").replace("{}", "")):
        bare = shorter
    assert bare == ""


def _without_strings(text: str) -> str:
    outside, quoted, escaped = [], False, False
    for character in text:
        if quoted:
            quoted = escaped or character != '"'
            escaped = not escaped and character == "\\"
        elif character == '"':
            quoted = True
        else:
            outside.append(character)
    return "".join(outside)


@pytest.mark.parametrize("text", ["word " * 100])
def test_text_is_cut_at_its_end(text: str) -> None:
    assert one_line(text, 20) == "word word word word…"
