"""The options of `grove-conformance run`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from conformance.commands.chosen_cluster import Context, Kubeconfig
from conformance.commands.kubernetes import Gates, Kubernetes, Policy, Presets, RuntimeConfig

UNTIL_FAIL_REPEATS = 100
"""The number of times that --until-fail runs a test, unless --repeat is given."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options as they are given. A field with the name of a run's setting is that setting."""

    pytest_option: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- PYTEST_OPTION", help="Options for pytest, for example -- -k gang --pdb."),
    ] = None
    implementation: Annotated[
        str, typer.Option(metavar="NAME", help="Implementation to judge (name or path of a descriptor).")
    ] = "reference"
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Set a parameter of the descriptor (repeatable)."),
    ] = None
    earlier: Annotated[
        str,
        typer.Option(
            "--from", metavar="NAME", help="Implementation that the judged one takes over from (profile upgrade)."
        ),
    ] = ""
    earlier_setting: Annotated[
        list[str] | None,
        typer.Option("--from-set", metavar="NAME=VALUE", help="Set a parameter of the --from descriptor (repeatable)."),
    ] = None
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Expect these failures, too: a file that `report baseline` has written."),
    ] = None
    profile: Annotated[
        list[str] | None,
        typer.Option(metavar="PROFILE", help="Judge only this profile (repeatable, also A,B)."),
    ] = None
    id: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Judge only this requirement (repeatable, also A,B)."),
    ] = None
    test: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEST",
            help="Run only this test, named as in reports, or those of this file or function (repeatable).",
        ),
    ] = None
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Run a handful of short tests, in about a minute: a first look, which says nothing of conformance.",
        ),
    ] = False
    skip: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Do not judge this requirement (repeatable, also A,B)."),
    ] = None
    with_invariants: Annotated[
        bool,
        typer.Option(
            "--with-invariants", help="With --profile: judge its invariants in the scenes of all other profiles, too."
        ),
    ] = False
    shard: Annotated[
        str, typer.Option(metavar="I/N", help="Run only the I-th of N parts, which take about equally long.")
    ] = ""
    rerun_failed: Annotated[
        str,
        typer.Option(metavar="RUN", help="Run what did not pass in this run again, as it was judged there."),
    ] = ""
    workers: Annotated[
        str,
        typer.Option(
            metavar="N",
            help="Number of parallel clusters, or of workers on an existing one, or `auto`; 0 runs the tests in this"
            " process.",
        ),
    ] = "auto"
    time_scale: Annotated[
        str,
        typer.Option(
            metavar="FACTOR",
            help="Multiply every timeout, for slow machines; below 1, only waits in which nothing changes,"
            " and the size of the set of profile scale.",
        ),
    ] = "1"
    fail_fast: Annotated[
        bool,
        typer.Option(
            "--fail-fast",
            help="Skip what is left of tests and scenes once all their selected requirements failed; those that few "
            "tests judge come first.",
        ),
    ] = False
    repeat: Annotated[
        int, typer.Option(min=1, max=1000, help="Run each test this many times and report the pass rate.")
    ] = 1
    until_fail: Annotated[
        bool,
        typer.Option(
            "--until-fail",
            help=f"Repeat each test ({UNTIL_FAIL_REPEATS} times without --repeat), and end at the first failure.",
        ),
    ] = False
    keep_cluster: Annotated[
        bool, typer.Option("--keep-cluster", help="End at the first failure, and leave its cluster as it is.")
    ] = False
    keep_passed: Annotated[
        bool, typer.Option("--keep-passed", help="Keep the evidence of scenes whose tests passed, too.")
    ] = False
    bundle_limit: Annotated[
        int,
        typer.Option(
            min=0,
            max=1 << 20,
            metavar="MIB",
            help="Leave out histories, objects and logs of failures once their evidence takes so many MiB.",
        ),
    ] = 200
    verbose: Annotated[bool, typer.Option("--verbose", help="Show every requirement and every failure in full.")] = (
        False
    )
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON, as in report.yaml, and nothing else on stdout.")
    ] = False
    report_dir: Annotated[Path, typer.Option(help="Parent folder of the run's folder.")] = Path("reports")
    seed: Annotated[int | None, typer.Option(help="Seed of the random choices in tests.")] = None
    cluster: Annotated[
        str, typer.Option(help="`own` starts a fake cluster per worker; `existing` uses --kubeconfig.")
    ] = "own"
    kubeconfig: Kubeconfig = None
    context: Context = ""
    install_stages: Annotated[
        bool,
        typer.Option(
            "--install-stages",
            help="Replace the Stages of an existing cluster's KWOK by ours for the time of the run.",
        ),
    ] = False
    keep_stages: Annotated[bool, typer.Option("--keep-stages", help="Leave these Stages there at the end.")] = False
    kubernetes: Kubernetes = ""
    features: Presets = None
    feature_gates: Gates = None
    runtime_config: RuntimeConfig = None
    policy: Policy = None
