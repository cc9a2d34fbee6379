"""Preparation of a run, which starts nothing: the descriptors are loaded and checked, the settings are completed, and
the requirements are selected."""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import shlex
import time
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import msgspec

from conformance import data
from conformance.cluster import policies, progress
from conformance.cluster.assets import resolve_all, served_versions, versions
from conformance.cluster.features import FeatureRequest, resolve, resolve_for_programs
from conformance.implementation import deployment, expectations, installer, rights
from conformance.implementation.descriptor import Descriptor, Role
from conformance.run import declared, reproduction
from conformance.suite.outcomes import ledger
from conformance.suite.registry import requirement
from conformance.suite.registry.selection import Selection, scope
from conformance.suite.session import existing, worker
from conformance.suite.settings import RunSettings

SUITE_FOLDERS = ("suite", "scale", "history", "invariants", "grove", "testing", "tests")
"""The folders of `conformance/` that determine what a verdict means. The suite's digest covers them."""


@dataclass(frozen=True)
class PreparedRun:
    """The completed settings, the judged implementation, the implementation that supplies the other roles, and the
    selection."""

    settings: RunSettings
    judged: Descriptor
    supplied: Descriptor | None
    chosen: Selection

    @property
    def implementation(self) -> ledger.Implementation:
        """Return the judged implementation as recorded in the ledger."""
        judged, supplied = self.judged, self.supplied
        missing_roles = sorted(set(Role) - judged.roles)
        return ledger.Implementation(
            name=judged.name,
            version=judged.version,
            roles=tuple(sorted(map(str, judged.roles))),
            features=tuple(sorted(judged.features)),
            digest=judged.digest,
            line=judged.line,
            release=judged.release,
            discovered=dict(judged.discovered),
            supplied={str(role): f"{supplied.name} {supplied.version}" for role in missing_roles} if supplied else {},
            expected_failures=tuple(
                ledger.ExpectedFailure(e.id, e.reason, e.link or "", e.expires.isoformat() if e.expires else "")
                for e in judged.expected_failures
            ),
        )


def run_id() -> str:
    """Return the id of a new run."""
    return time.strftime("r%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(2)


def prepare(settings: RunSettings, report_dir: Path, *, is_default_cluster: bool) -> PreparedRun:
    """Load and check the implementation, and complete the settings. `is_default_cluster` is set if the user has not
    chosen a cluster; in this case the selected profiles determine it. Raises UsageError if the implementation or a
    setting is invalid."""
    registry = requirement.load()
    judged, supplied = worker.load_implementation(settings)
    if settings.baseline:
        document, baseline = expectations.read(Path(settings.baseline))
        declared.check_expected_failures(document, baseline.expected_failures, registry)
        judged = expectations.with_baseline(judged, baseline, document.path)
    if settings.cluster == "own":
        deployment.require_containers(judged)
    for implementation in filter(None, (judged, judged.predecessor, supplied)):
        installer.check(implementation)
    if policies.RBAC in settings.policies:
        rights.require_declared(judged)
    declared.check(judged, registry)
    if settings.cluster == "own":
        deployment.require_crds(judged)
    roles, features = tuple(sorted(map(str, judged.roles))), tuple(sorted(judged.features))
    settings = with_changes(
        settings,
        directory=str((report_dir / settings.run).absolute()),
        roles=roles,
        features=features,
        release=judged.release,
        expected=_unexpired_failures(judged, datetime.now(UTC).date()),
    )
    if is_default_cluster:
        settings = _with_default_cluster(settings, registry, selection(settings, registry))
    settings = with_changes(settings, reproduce=reproduction.command(settings))
    return PreparedRun(settings, judged, supplied, selection(settings, registry))


def selection(settings: RunSettings, registry: requirement.Registry) -> Selection:
    """Return the selection of a run. Raises UsageError for an unknown profile or id."""
    return scope(
        registry,
        settings.profiles,
        settings.ids,
        settings.roles,
        settings.features,
        settings.kubernetes,
        settings.release,
        skip=settings.skip,
    )


def get_programs(settings: RunSettings) -> None:
    """Get the programs for the run's own clusters now, while the user can watch the progress. Raises UsageError if a
    feature is unknown, or HarnessError if a program cannot be built."""
    minor = settings.kubernetes.rpartition(".")[0]
    resolve(settings.cluster_features, minor)  # reports a misspelt preset before minutes of building
    with progress.terminal("programs") as report:
        assets = resolve_all(report, settings.kubernetes)
    resolve_for_programs(settings.cluster_features, minor, assets.program)


def suite_digest() -> str:
    """Return `sha256:` and the digest of the files that determine what a verdict means, in the order of their paths."""
    digest = hashlib.sha256()
    root = Path(__file__).resolve().parent.parent
    folders = [*(root / name for name in SUITE_FOLDERS), data.folder("fixtures") / "workloads"]
    for folder in folders:
        for path in sorted(p for p in folder.rglob("*") if p.suffix in (".py", ".yaml", ".json")):
            digest.update(f"{folder.name}/{path.relative_to(folder).as_posix()}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return "sha256:" + digest.hexdigest()


def environment(settings: RunSettings) -> dict[str, str]:
    """Return what the results of a run depend on besides the implementation and the suite."""
    cluster_info = served_versions(settings.kubernetes)
    if settings.cluster == "existing":
        cluster_info = existing.versions(Path(settings.kubeconfig))
    if settings.cluster_features:
        cluster_info["features"] = shlex.join(settings.cluster_features.options())
    if settings.policies:
        cluster_info["policies"] = ", ".join(Path(word).name for word in settings.policies)
    return {
        **cluster_info,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}".lower(),
        "cpus": str(os.cpu_count() or 0),
    }


def with_changes(settings: RunSettings, **changes: object) -> RunSettings:
    """Return the settings with the given changes."""
    return msgspec.structs.replace(settings, **changes)


def _unexpired_failures(judged: Descriptor, today: date) -> dict[str, str]:
    """Return the ids of the unexpired expected failures, with the reasons for them."""
    return {e.id: e.reason for e in judged.expected_failures if e.expires is None or e.expires > today}


def _with_default_cluster(settings: RunSettings, registry: requirement.Registry, selection: Selection) -> RunSettings:
    """Return the settings with the cluster that the selected profiles need, if the default cluster does not suffice."""
    cluster_needs = [registry.clusters[profile] for profile in selection.profiles if profile in registry.clusters]
    if not cluster_needs:
        return settings
    presets = tuple(sorted({name for cluster_need in cluster_needs for name in cluster_need.features}))
    kubernetes = versions(cluster_needs[0].kubernetes)["kubernetes"]
    return with_changes(settings, kubernetes=kubernetes, cluster_features=FeatureRequest(presets=presets))
