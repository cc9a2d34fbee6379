"""Tests that a rendered page is a single HTML file that loads no other file and escapes every value."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from conformance.pages.render import render

HOSTILE = "</script><img src=x onerror=alert(1)> & \"quoted\" 'too' {{ 7 * 191 }}"
PAGE = """{% extends "base.html" %}
{% from "parts.html" import command, table, verdict %}
{% block title %}{{ words }}{% endblock %}
{% block main %}
<h1 title="{{ words }}">{{ words }}</h1>
{{ verdict("bad", words) }}
{{ command(words) }}
{{ table([words], [[words]]) }}
{% endblock %}
"""


@pytest.fixture
def template(tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    path.write_text(PAGE)
    (tmp_path / "own.css").write_text("h1 > b { color: red; }\n")
    (tmp_path / "own.js").write_text("if (1 < 2 && true) { document.title += '!'; }\n")
    return path


def test_every_value_is_escaped(template: Path) -> None:
    text = render(template, {"words": HOSTILE})
    assert "<img" not in text and "onerror=alert(1)>" not in text and "1337" not in text
    assert text.count("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt; &amp; &#34;quoted&#34;") == 7


def test_styles_and_scripts_are_inlined_unchanged(template: Path) -> None:
    text = render(template, {"words": "x"}, styles=["own.css"], scripts=["own.js"])
    assert "h1 > b { color: red; }" in text and "if (1 < 2 && true)" in text
    assert not re.findall(r'(?:src|href)="(?!#)', text)


def test_the_page_allows_only_its_own_scripts(template: Path) -> None:
    text = render(template, {"words": "x"}, scripts=["own.js"])
    scripts = re.findall(r"<script>(.*?)</script>", text, re.S)
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert "default-src 'none'" in policy
    assert re.findall(r"'sha256-([^']*)'", policy) == digests and len(digests) == 2


def test_a_missing_value_is_an_error(template: Path) -> None:
    with pytest.raises(UndefinedError):
        render(template, {})
