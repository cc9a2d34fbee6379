"""Tests that the help of every command fits into 80 columns, without boxes or truncated sentences."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from conformance import cli
from conformance.errors import Exit

GROUPS = ("cluster", "scale", "lab", "scheduler", "implementation", "findings")


def help_of(*command_words: str) -> str:
    result = CliRunner().invoke(cli.app, [*command_words, "--help"], terminal_width=80)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    "command_words", [(), *((command,) for command in cli.COMMANDS)], ids=lambda command_words: "-".join(command_words)
)
def test_help_fits_80_columns(command_words: tuple[str, ...]) -> None:
    text = help_of(*command_words)
    assert not re.search("[│╭╰─]", text)
    assert max(map(len, text.splitlines())) <= 80
    assert not re.search(r"[^\]]\.\.\.$", text, re.M), "a sentence is cut"


def test_help_of_subcommands_has_no_boxes() -> None:
    for group in GROUPS:
        for command in re.findall(r"^  ([a-z]+)  ", help_of(group).partition("Commands:")[2], re.M):
            assert not re.search("[│╭╰─]", help_of(group, command)), (group, command)


@pytest.mark.parametrize(
    "command_words",
    [(), ("implementation",), ("report",), ("cluster", "nodes")],
    ids=lambda command_words: "-".join(command_words),
)
def test_a_group_without_a_command_prints_its_help(
    command_words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(lambda: cli.app(list(command_words), standalone_mode=False)) == Exit.USAGE
    text = capsys.readouterr().err
    assert text.startswith("Usage: ") and "see --help" not in text


def test_options_after_two_dashes_are_for_pytest() -> None:
    assert "-- PYTEST_OPTION" in help_of("run")
