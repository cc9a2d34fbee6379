"""`grove-conformance run`: check the arguments, then launch the run."""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import shlex
import shutil
import sys
import time
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from conformance import data, disk
from conformance.cluster import chosen_kubeconfig, progress
from conformance.cluster.assets import resolve_all, served, versions
from conformance.cluster.features import Requested, of_programs, resolve
from conformance.cluster.state import State
from conformance.commands import declared
from conformance.commands.kubernetes import Gates, Kubernetes, Presets, RuntimeConfig, requested
from conformance.documents import suggestion
from conformance.errors import UsageError
from conformance.implementation import deployment, installer, parameters
from conformance.implementation.descriptor import Descriptor, Role
from conformance.run import launch
from conformance.suite.outcomes import ledger
from conformance.suite.registry import requirement
from conformance.suite.registry.selection import Scope, scope
from conformance.suite.scenes.repeated import names_of
from conformance.suite.session import existing, worker
from conformance.suite.settings import RunSettings

SUITE = ("suite", "scale", "history", "invariants", "grove", "testing", "tests")
"""The folders of `conformance/` that determine what a verdict means: they are in the suite's digest."""

_FILES = " (grove-conformance explain ID has the tests of a requirement)"

SPACE = 64 << 20
"""Bytes that must be free for a report with its failure bundles."""


def run(
    ctx: typer.Context,
    implementation: Annotated[
        str, typer.Option(help="Implementation to judge (name or path of a descriptor).")
    ] = "reference",
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="Set a parameter of the descriptor, NAME=VALUE (repeatable).")
    ] = None,
    earlier: Annotated[
        str, typer.Option("--from", help="Implementation that the judged one takes over from (profile upgrade).")
    ] = "",
    earlier_setting: Annotated[
        list[str] | None,
        typer.Option("--from-set", help="Set a parameter of the --from descriptor, NAME=VALUE (repeatable)."),
    ] = None,
    profile: Annotated[list[str] | None, typer.Option(help="Judge only this profile (repeatable).")] = None,
    id: Annotated[list[str] | None, typer.Option(help="Judge only this requirement (repeatable).")] = None,
    test: Annotated[
        list[str] | None,
        typer.Option(help="Run only this test, named as in reports, or those of this file or function (repeatable)."),
    ] = None,
    workers: Annotated[
        str, typer.Option(help="Number of parallel clusters, or `auto`; 0 runs the tests in this process.")
    ] = "auto",
    time_scale: Annotated[
        str,
        typer.Option(
            help="Multiply every timeout, for slow machines; below 1, only waits in which nothing changes,"
            " and the size of the set of profile scale."
        ),
    ] = "1",
    fail_fast: Annotated[
        bool,
        typer.Option(
            "--fail-fast",
            help="Skip what is left of tests and scenes once all their selected requirements failed; those that few "
            "tests judge come first.",
        ),
    ] = False,
    repeat: Annotated[
        int, typer.Option(min=1, max=1000, help="Run each test this many times and report the pass rate.")
    ] = 1,
    keep_passed: Annotated[
        bool, typer.Option("--keep-passed", help="Keep the evidence of scenes whose tests passed, too.")
    ] = False,
    bundle_limit: Annotated[
        int,
        typer.Option(
            min=0,
            max=1 << 20,
            metavar="MIB",
            help="Leave out histories, objects and logs of failures once their evidence takes so many MiB.",
        ),
    ] = 200,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show every requirement and every failure in full.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON, as in report.yaml, and nothing else on stdout.")
    ] = False,
    report_dir: Annotated[Path, typer.Option(help="Parent folder of the run's folder.")] = Path("reports"),
    seed: Annotated[int | None, typer.Option(help="Seed of the random choices in tests.")] = None,
    cluster: Annotated[
        str, typer.Option(help="`own` starts a fake cluster per worker; `existing` uses --kubeconfig.")
    ] = "own",
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Kubeconfig of the existing cluster; by default as kubectl chooses it.")
    ] = None,
    context: Annotated[str, typer.Option(help="Context of the kubeconfig; by default its current one.")] = "",
    kubernetes: Kubernetes = "",
    features: Presets = None,
    feature_gates: Gates = None,
    runtime_config: RuntimeConfig = None,
) -> int:
    """Judge an implementation and write a report to reports/<run>/report.yaml.

    Exit codes: 0 conformant, 1 not conformant, 2 interrupted, 3 harness or cluster error, 4 usage error, 5 nothing was
    run, 6 partial (part of the selection could not be judged, or a SHOULD failed), 7 stale expectation, 8 conformant,
    but not everything could be printed.
    """
    scale, count = _time_scale(time_scale), _workers(workers)
    where, options = _cluster(ctx, cluster, kubeconfig, context, count)
    unplayed = existing.guard(Path(where), scale) if where else {}
    wanted = requested(features, feature_gates, runtime_config)
    if where:
        existing.prove(Path(where), wanted)
    registry = requirement.load()
    if earlier_setting and not earlier:
        raise UsageError("needs --from NAME", where="--from-set", hint="name the implementation to take over from")
    disk.require(report_dir, SPACE, where=f"--report-dir {report_dir}", hint="make room, or give another folder")
    if not where:
        State().require()
    elif kubernetes:
        raise UsageError("an existing cluster has its own version", where="--kubernetes", hint="leave it out")
    settings = RunSettings(
        run=_run_id(),
        directory="",
        implementation=implementation,
        parameters=parameters.assignments(setting or ()),
        earlier=earlier,
        earlier_parameters=parameters.assignments(earlier_setting or (), "--from-set"),
        profiles=tuple(sorted(set(profile or ()))),
        ids=tuple(sorted(set(id or ()))),
        only=tuple(sorted(set(test or ()))),
        time_scale=scale,
        fail_fast=fail_fast,
        repeat=repeat,
        keep_passed=keep_passed,
        bundle_limit=bundle_limit,
        verbose=verbose,
        as_json=as_json,
        seed=secrets.randbelow(1 << 31) if seed is None else seed,
        cluster="existing" if where else "own",
        kubeconfig=where,
        kubeconfig_options=options,
        unplayed=unplayed,
        kubernetes="" if where else versions(kubernetes)["kubernetes"],
        cluster_features=wanted,
    )
    judged, supplied = worker.load_implementation(settings)
    if not where:
        deployment.require_containers(judged)
    for each in filter(None, (judged, judged.predecessor, supplied)):
        installer.check(each)
    declared.check(judged, registry)
    roles, claimed = tuple(sorted(map(str, judged.roles))), tuple(sorted(judged.features))
    chosen = scope(registry, settings.profiles, settings.ids, roles, claimed, release=judged.release)
    if not (where or kubernetes or wanted):
        settings = _on_their_cluster(settings, registry, chosen)
    chosen = scope(registry, settings.profiles, settings.ids, roles, claimed, settings.kubernetes, judged.release)
    settings = _with(
        settings,
        directory=str((report_dir / settings.run).absolute()),
        roles=roles,
        features=claimed,
        release=judged.release,
    )
    settings = _with(settings, reproduce=_reproduce(settings, setting or (), earlier_setting or ()))
    plan = launch.collect(settings)
    settings = _with(settings, ids=_of_tests(settings, plan, chosen))
    if plan.selected and not where:
        minor = settings.kubernetes.rpartition(".")[0]
        resolve(settings.cluster_features, minor)  # a misspelt set is said before minutes of building
        with progress.terminal("programs") as report:  # here, where the user can watch them
            assets = resolve_all(report, settings.kubernetes)
        of_programs(settings.cluster_features, minor, assets.program)
    # Bound to the terminal itself: while pytest runs, sys.stderr is its log file.
    err = Console(file=sys.stderr, highlight=False, soft_wrap=True)
    settings = _with(
        settings, workers=1 if where and count is None else _how_many(count, len(set(plan.groups.values())))
    )
    after = f" after {judged.upgrades[0].about}" if settings.earlier else ""
    on = "".join(f", {words}" for words in (_not_default(settings), shlex.join(wanted.options())) if words)
    for line in existing.effects(Path(where), [each for each in (judged, supplied) if each]) if where else ():
        err.print(line, markup=False)
    for ability, seen in unplayed.items():
        err.print(f"the cluster does not play {ability}: {seen}; what needs that is blocked", markup=False)
    say = f"run {settings.run}: {judged.name} {judged.version}{after}{on}, {len(plan.selected)} tests, "
    err.print(say + f"{settings.workers} workers, seed {settings.seed}", markup=False)
    return launch.run(
        settings,
        plan,
        _facts(judged, supplied),
        suite=(metadata.version("grove-conformance"), suite_digest()),
        environment=_environment(settings),
        out=Console(file=sys.stdout, highlight=False),
        err=err,
    )


def suite_digest() -> str:
    """Return `sha256:` over the files that determine what a verdict means, by path."""
    total = hashlib.sha256()
    root = Path(__file__).resolve().parent.parent
    places = [*(root / name for name in SUITE), data.folder("fixtures") / "workloads"]
    for place in places:
        for path in sorted(p for p in place.rglob("*") if p.suffix in (".py", ".yaml", ".json")):
            total.update(f"{place.name}/{path.relative_to(place).as_posix()}\0".encode())
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return "sha256:" + total.hexdigest()


# -- arguments -------------------------------------------------------------------------------------------------------


def _time_scale(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.1 <= value <= 100:
        raise UsageError(
            f"{text!r} is not a valid time scale", where="--time-scale", hint="give a number from 0.1 to 100"
        )
    return value


def _workers(text: str) -> int | None:
    """Return the number of workers; None for `auto`."""
    if text == "auto":
        return None
    if not text.isascii() or not text.isdigit() or int(text) > 64:
        raise UsageError(f"{text!r} is not a valid number of workers", where="--workers", hint="give `auto` or 0 to 64")
    return int(text)


def _how_many(wanted: int | None, tests: int) -> int:
    return max(1, min(os.cpu_count() or 1, tests)) if wanted is None else min(wanted, max(tests, 1))


def _cluster(
    ctx: typer.Context, cluster: str, kubeconfig: Path | None, context: str, count: int | None
) -> tuple[str, tuple[str, ...]]:
    """Return the kubeconfig of an existing cluster and the options that choose it; empty for clusters of the run
    itself."""
    if cluster not in ("own", "existing"):
        raise UsageError(
            f"unknown kind of cluster {cluster!r}", where="--cluster", hint=suggestion(cluster, ("own", "existing"))
        )
    if cluster == "own":
        for option, value in (("--kubeconfig", kubeconfig), ("--context", context)):
            if value:
                raise UsageError("needs --cluster existing", where=option, hint=f"add it, or drop {option}")
        return "", ()
    found = ctx.with_resource(chosen_kubeconfig.chosen(kubeconfig, context))
    if count is not None and count > 1:
        raise UsageError("an existing cluster has only one worker", where=f"--workers {count}", hint="leave it out")
    return str(found.path), found.options


def _run_id() -> str:
    return time.strftime("r%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(2)


def _on_their_cluster(settings: RunSettings, registry: requirement.Registry, chosen: Scope) -> RunSettings:
    """Return the settings with the cluster that the selected profiles need, if the default one will not do."""
    needs = [registry.clusters[profile] for profile in chosen.profiles if profile in registry.clusters]
    if not needs:
        return settings
    presets = tuple(sorted({name for each in needs for name in each.features}))
    kubernetes = versions(needs[0].kubernetes)["kubernetes"]
    return _with(settings, kubernetes=kubernetes, cluster_features=Requested(presets=presets))


def _of_tests(settings: RunSettings, plan: launch.Plan, chosen: Scope) -> tuple[str, ...]:
    """Return the judged ids: with --test, those of the selected ones that the named tests declare."""
    if not settings.only:
        return settings.ids
    known = {name for test in plan.collected for name in names_of(test, settings.repeat)}
    for name in settings.only:
        if name not in known:
            raise UsageError(f"unknown test {name!r}", where="--test", hint=suggestion(name, known) + _FILES)
    declared = {id for ids in plan.selected.values() for id in ids}
    return tuple(sorted(declared & chosen.judged))


def _reproduce(settings: RunSettings, given: Iterable[str], of_earlier: Iterable[str]) -> str:
    """Return the command line that repeats a test of this run, without the name of the test. The selection of the run
    decides what the test judges, and the repetition is part of its random numbers."""
    words = [_program(), "run", "--implementation", settings.implementation]
    for text in given:
        words += ["--set", text]
    words += ["--from", settings.earlier] if settings.earlier else []
    for text in of_earlier:
        words += ["--from-set", text]
    for option, values in (("--profile", settings.profiles), ("--id", settings.ids)):
        for value in values:
            words += [option, value]
    words += ["--repeat", str(settings.repeat)] if settings.repeat > 1 else []
    words += settings.cluster_features.options()
    words += ["--kubernetes", settings.kubernetes] if _not_default(settings) else []
    words += ["--time-scale", f"{settings.time_scale:g}", "--seed", str(settings.seed)]
    if settings.cluster == "existing":
        words += ["--cluster", "existing", *settings.kubeconfig_options]
    return shlex.join(words)


def _not_default(settings: RunSettings) -> str:
    """Return the version of Kubernetes with its name; empty for the default one and on an existing cluster."""
    usual = settings.kubernetes in ("", versions()["kubernetes"])
    return "" if usual else f"Kubernetes {settings.kubernetes}"


def _program() -> str:
    """Return this program as it can be called from here: its bare name only if a shell would find it."""
    name = "grove-conformance"
    found = shutil.which(name)
    started = Path(sys.argv[0])
    return name if started.name != name or (found and started.samefile(found)) else str(started)


def _facts(judged: Descriptor, supplied: Descriptor | None) -> ledger.Implementation:
    absent = sorted(set(Role) - judged.roles)
    return ledger.Implementation(
        name=judged.name,
        version=judged.version,
        roles=tuple(sorted(map(str, judged.roles))),
        features=tuple(sorted(judged.features)),
        digest=judged.digest,
        line=judged.line,
        release=judged.release,
        discovered=dict(judged.discovered),
        supplied={str(role): f"{supplied.name} {supplied.version}" for role in absent} if supplied else {},
        expected_failures=tuple(
            ledger.ExpectedFailure(e.id, e.reason, e.link or "", e.expires.isoformat() if e.expires else "")
            for e in judged.expected_failures
        ),
    )


def _environment(settings: RunSettings) -> dict[str, str]:
    used = served(settings.kubernetes)
    if settings.cluster == "existing":
        used = existing.versions(Path(settings.kubeconfig))
    if settings.cluster_features:
        used["features"] = shlex.join(settings.cluster_features.options())
    return {
        **used,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}".lower(),
        "cpus": str(os.cpu_count() or 0),
    }


def _with(settings: RunSettings, **changes: object) -> RunSettings:
    return msgspec.structs.replace(settings, **changes)
