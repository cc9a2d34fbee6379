"""Tests that docs/writing-an-implementation.md is correct: its example loads, and its tables are complete."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

from conformance import formats
from conformance.data import PROJECT
from conformance.implementation import installation, loading, placeholders
from conformance.implementation.descriptor import DescriptorFormat, Role

GUIDE = PROJECT / "docs/writing-an-implementation.md"


def guide_section(heading: str) -> str:
    return re.search(rf"^## {heading}.*?$(.*?)(?=^## |\Z)", GUIDE.read_text(), re.M | re.S)[1]


def test_the_tutorials_descriptor_loads(tmp_path: Path) -> None:
    blocks = [
        textwrap.dedent(b) for b in re.findall(r"^ *```yaml\n(.*?)^ *```", guide_section("Tutorial"), re.M | re.S)
    ]
    (hooks,) = [block for block in blocks if "WebhookConfiguration" in block]
    (tmp_path / "mine.yaml").write_text("".join(block for block in blocks if block is not hooks))
    (tmp_path / "config/crd").mkdir(parents=True)
    (tmp_path / "config/crd/sets.yaml").write_text("")
    (tmp_path / "conformance").mkdir()
    (tmp_path / "conformance/webhooks.yaml").write_text(hooks)
    binary = tmp_path / "my-operator"
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    descriptor = loading.load(str(tmp_path / "mine.yaml"), {"binary": str(binary)})
    assert descriptor.roles == {Role.OPERATOR}
    assert [failure.id for failure in descriptor.expected_failures] == ["GANG-008"]
    (path,) = descriptor.manifests("webhooks")
    placeholders.check(hooks, process=False)
    expanded_hooks = placeholders.expand(hooks, lambda name: "9443")
    for configuration in installation.read_manifests(path, expanded_hooks, tuple(installation.WEBHOOKS)):
        installation.check_webhook(path, configuration)


def test_every_command_of_the_guide_can_be_called_unchanged() -> None:
    for line in re.findall(r"^ *\$ (.*)$", GUIDE.read_text(), re.M):
        assert line.startswith(("grove-conformance ", "make ")), line


def test_the_crds_that_the_guide_offers_exist() -> None:
    (path,) = set(re.findall(r"the whole folder `\$\{project\}/([^`]*)`", GUIDE.read_text()))
    assert list((PROJECT / path).glob("*.yaml"))


def test_every_field_is_in_the_table_of_fields() -> None:
    schema = json.loads(formats.schema(DescriptorFormat))
    table = guide_section("All fields")
    names = {name for definition in schema["$defs"].values() for name in definition.get("properties", ())}
    assert {"apiVersion", "webhooks", "within", "grace"} <= names
    assert {name for name in names if not re.search(rf"\b{name}\b", table)} == set()


def test_every_placeholder_is_in_the_table_of_placeholders() -> None:
    documented_names = set(re.findall(r"^\| `\$\{([^}]*)\}`", guide_section("Placeholders"), re.M))
    assert documented_names == placeholders.SIMPLE_NAMES | {*placeholders.POD_LABELS} | {
        f"{family}.NAME" for family in placeholders.FAMILIES
    }
