"""Tests that mutants and variants are found by name, armed by role, and applicable to the current code."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest
from typer.testing import CliRunner

from conformance.suite.registry import requirement
from conformance.suite.registry.requirement import Level
from mutants import trials
from mutants.registry import MUTANTS, VARIANTS, Catalog
from reference_impl import cli, extensions
from tests.coherent.test_coherent_rules import FAULTS

CATALOGS = pytest.mark.parametrize("catalog", [MUTANTS, VARIANTS], ids=lambda catalog: catalog.word)

TRACES = "played traces break it, see tests/coherent/test_coherent_rules.py"
KUBERNETES = "see tests/suite/test_workload_api_profile.py, test_workload_api_checks.py, docs/findings"
OF_KUBERNETES = (
    *range(1, 18),
    *range(20, 29),
    *range(30, 36),
    *range(40, 45),
    *range(50, 55),
    *range(60, 69),
    90,
    91,
    92,
    97,
)
UNCLAIMED = {
    **{f"INV-{number:03}": TRACES for number in (12, 13, 14, 15, 19, 20, 21, 22, 23)},
    **{f"WAPI-{number:03}": KUBERNETES for number in OF_KUBERNETES},
}
"""Requirements that no mutant is known to violate → the place that shows that they can fail."""

CHECK_SCRIPT = """
import inspect, os, pathlib, sys, tempfile
from mutants import registry, replacement


def function(item):
    return getattr(item, "__func__", None) or getattr(item, "fget", None) or getattr(item, "func", item)


def checked(replace, results):
    def check(target, name, wrong, *more, **named):
        right = function(inspect.getattr_static(target, name))
        if callable(right):
            parameters = inspect.signature(right).parameters.values()
            plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
            own = {p.name: None for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty}
            inspect.signature(function(wrong)).bind(*[None] * (results + len(plain)), **own)
        return replace(target, name, wrong, *more, **named)

    return check


replacement.replace, replacement.alter = checked(replacement.replace, 0), checked(replacement.alter, 1)
bad = []
notes = pathlib.Path(tempfile.mkdtemp())
for name, switch in getattr(registry, sys.argv[1]).all().items():
    os.environ[replacement.CALLS] = str(notes / name)
    if not (child := os.fork()):  # each on the code as it is: it cannot be undone
        switch.apply()
        os._exit(0)
    if os.waitpid(child, 0)[1] or not replacement.uncalled(notes / name):
        bad.append(name)
sys.exit(" ".join(bad) or 0)
"""


@CATALOGS
def test_each_switch_can_be_applied_and_records_its_replacements(catalog: Catalog) -> None:
    """Each replacement takes the arguments of the function that it replaces."""
    done = subprocess.run(
        [sys.executable, "-c", CHECK_SCRIPT, f"{catalog.word.upper()}S"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_each_switch_names_existing_requirements_and_profiles() -> None:
    requirement_ids, profiles = set(requirement.load().requirements), set(requirement.load().profiles)
    claims = {name: {*mutant.caught_by, *mutant.blocks} for name, mutant in MUTANTS.all().items()}
    claims |= {name: {*variant.passes, *variant.exempt} for name, variant in VARIANTS.all().items()}
    assert {name: ids for name, ids in claims.items() if not ids or ids - requirement_ids} == {}
    assert all(mutant.caught_by for mutant in MUTANTS.all().values())
    assert {profile for variant in VARIANTS.all().values() for profile in variant.profiles} <= profiles


def test_no_variant_is_exempt_from_a_must() -> None:
    musts = {entry.id for entry in requirement.load().requirements.values() if entry.level is Level.MUST}
    assert {name: broken for name, variant in VARIANTS.all().items() if (broken := musts & {*variant.exempt})} == {}


def test_each_requirement_has_been_seen_failing() -> None:
    claimed = {identity for mutant in MUTANTS.all().values() for identity in mutant.caught_by}
    assert requirement.load().requirements.keys() - claimed == UNCLAIMED.keys()
    assert {identity for identity, reason in UNCLAIMED.items() if reason == TRACES} <= {*FAULTS, "INV-023"}


@pytest.mark.parametrize(
    ("catalog", "wrong", "near"),
    [(MUTANTS, "partial-bnd", "partial-bind"), (VARIANTS, "another-colum", "another-column")],
    ids=lambda value: getattr(value, "word", ""),
)
def test_an_unknown_name_is_refused_with_a_suggestion(catalog: Catalog, wrong: str, near: str) -> None:
    with pytest.raises(extensions.UnknownNameError, match=f"no {catalog.word} '{wrong}'; did you mean '{near}'"):
        catalog.arm([wrong], "operator")


@CATALOGS
def test_switches_of_the_other_role_are_ignored(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    applied: list[str] = []
    [switch] = catalog.named([next(iter(catalog.all()))])
    recording = type(switch)(**{**vars(switch), "role": "operator", "apply": lambda: applied.append(switch.name)})
    monkeypatch.setitem(catalog._switches, switch.name, recording)
    catalog.arm([switch.name], "gang-scheduler")
    assert applied == []
    catalog.arm([switch.name], "operator")
    assert applied == [switch.name]


@pytest.mark.parametrize(("command", "name"), [("mutants", "partial-bind"), ("variants", "another-column")])
def test_the_command_line_lists_all_switches(command: str, name: str) -> None:
    result = CliRunner().invoke(cli.app, [command])
    assert result.exit_code == 0 and name in result.stdout


@pytest.mark.parametrize("command", ["mutants", "variants"])
def test_a_missing_package_is_reported_on_the_command_line(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = metadata.EntryPoint(command[:-1], "no_such_package:MUTANTS", extensions.GROUP)
    monkeypatch.setattr(extensions, "entry_points", lambda **_: [missing])
    result = CliRunner().invoke(cli.app, [command])
    assert result.exit_code == 2 and f"no {command} are installed" in result.output


def test_the_selection_covers_each_profile_both_roles_and_the_invariants() -> None:
    """Only two profiles are not covered by the selection, because a large set takes minutes and kube-scheduler needs a
    separate cluster. `make mutants` covers them."""
    registry = requirement.load()
    chosen = MUTANTS.named(trials.selection())
    claimed_ids = {id for mutant in chosen for id in mutant.caught_by}
    profiles = {entry.profile for entry in registry.requirements.values()}
    assert {registry.requirements[id].profile for id in claimed_ids} == profiles - {"scale", "workload-api"}
    assert {mutant.role for mutant in chosen} == {"operator", "gang-scheduler"}
    assert any(id.startswith(trials.INVARIANT) for id in claimed_ids)
    assert len(chosen) <= 17, "make test is to stay short; make mutants proves all of them"


def test_every_third_mutant_of_the_selection_covers_both_roles_and_a_profile_of_its_own() -> None:
    """`make test` proves only these mutants."""
    registry = requirement.load()
    quick = MUTANTS.named(trials.selection())[::3]
    profiles = [{registry.requirements[identity].profile for identity in mutant.caught_by} for mutant in quick]
    assert {mutant.role for mutant in quick} == {"operator", "gang-scheduler"}
    assert len(set().union(*profiles)) >= len(quick) == 6
