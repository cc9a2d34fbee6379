"""The operator's configuration: a YAML file of typed settings (docs/spec/api.md, section 13)."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Literal

import msgspec

from reference_impl.plan import durations
from reference_impl.plan.hashing.schemes import CANONICAL, SCHEMES
from reference_impl.plan.hashing.window import Policy

DEFAULT_SCHEDULER = "default-scheduler"
SCHEDULERS = ("kai-scheduler", DEFAULT_SCHEDULER, "volcano", "lpx-scheduler")
"""Profiles that Grove knows (CFG-18). Our own scheduler's name, whatever it is, is one more."""


class InvalidConfigurationError(Exception):
    """The file cannot be used; `str()` is one line that says why."""


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    ERROR = "error"


class LogFormat(StrEnum):
    JSON = "json"
    TEXT = "text"


class Setting(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Base of every part of the configuration."""


class Topology(Setting, frozen=True):
    """Whether sets may have topology constraints (CFG-16)."""

    enabled: bool = False


class Network(Setting, frozen=True):
    """Whether sets may ask for multi-node NVLink (CFG-17)."""

    auto_mnnvl_enabled: bool = msgspec.field(default=False, name="autoMNNVLEnabled")


class Authorizer(Setting, frozen=True):
    """Whether managed objects are protected, and from whom not (CFG-15). The operator itself is always let through."""

    enabled: bool = False
    exempt_service_account_user_names: tuple[str, ...] = ()


class Profile(Setting, frozen=True):
    name: str = ""


class Scheduler(Setting, frozen=True):
    """Schedulers that sets may name; the default one is what an empty name means (CFG-18, CFG-19)."""

    profiles: tuple[Profile, ...] = ()
    default_profile_name: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The enabled profiles; `default-scheduler` is always one."""
        return tuple(dict.fromkeys([*(profile.name for profile in self.profiles), DEFAULT_SCHEDULER]))

    @property
    def default(self) -> str:
        return self.default_profile_name or DEFAULT_SCHEDULER

    def resolved(self, name: str) -> str:
        """What an empty name means."""
        return name or self.default


class LeaderElection(Setting, frozen=True):
    """CFG-04 to CFG-06; durations in Go's notation."""

    enabled: bool = False
    lease_duration: str = "15s"
    renew_deadline: str = "10s"
    retry_period: str = "2s"
    resource_lock: Literal["leases"] = "leases"
    resource_name: str = "grove-operator-leader-election"
    resource_namespace: str = ""

    def seconds(self, field: str) -> float:
        """One of the durations. Raises ValueError."""
        return durations.parse(getattr(self, field)) / 1e9


class Hashes(Setting, frozen=True):
    """How template hashes are written, by the name of a scheme, and whether those that others wrote of the same
    template are recognised. Legacy ones without the window are what an operator of that time does (docs/hashes.md)."""

    written: str = CANONICAL.name
    window: bool = True

    @property
    def policy(self) -> Policy:
        return Policy(SCHEMES[self.written], tuple(SCHEMES.values()) if self.window else ())


class Configuration(Setting, frozen=True):
    """All settings with their defaults."""

    log_level: LogLevel = LogLevel.INFO
    log_format: LogFormat = LogFormat.TEXT
    topology_aware_scheduling: Topology = Topology()
    network: Network = Network()
    authorizer: Authorizer = Authorizer()
    scheduler: Scheduler = Scheduler()
    leader_election: LeaderElection = LeaderElection()
    hashes: Hashes = Hashes()


def standard(own_scheduler: str) -> Configuration:
    """What holds without a file."""
    return _with_own(Configuration(), own_scheduler)


def load(path: Path, *, own_scheduler: str) -> Configuration:
    """Reads a configuration. `own_scheduler` is always an enabled profile, and the default one where the file names
    none. Raises InvalidConfigurationError."""
    try:
        found = msgspec.yaml.decode(path.read_bytes(), type=Configuration | None) or Configuration()
    except OSError as error:
        raise InvalidConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise InvalidConfigurationError(f"{path}: {' '.join(str(error).split())}") from None
    found = _with_own(found, own_scheduler)
    if complaint := _complaint(found, (*SCHEDULERS, own_scheduler)):
        raise InvalidConfigurationError(f"{path}: {complaint}")
    return found


def _with_own(found: Configuration, own_scheduler: str) -> Configuration:
    profiles = found.scheduler.profiles
    if own_scheduler not in {profile.name for profile in profiles}:
        profiles = (*profiles, Profile(name=own_scheduler))
    default = found.scheduler.default_profile_name or own_scheduler
    return msgspec.structs.replace(found, scheduler=Scheduler(profiles=profiles, default_profile_name=default))


def _complaint(found: Configuration, known: tuple[str, ...]) -> str:
    """What types cannot say (CFG-05, CFG-18, CFG-19); empty when all is well."""
    names = [profile.name for profile in found.scheduler.profiles]
    for i, name in enumerate(names):
        if name not in known:
            return f"scheduler.profiles[{i}].name: {name!r} is none of {', '.join(dict.fromkeys(known))}"
        if name in names[:i]:
            return f"scheduler.profiles[{i}].name: {name!r} stands there twice"
    if found.scheduler.default not in found.scheduler.names:
        return f"scheduler.defaultProfileName: {found.scheduler.default!r} is none of the profiles"
    if found.hashes.written not in SCHEMES:
        return f"hashes.written: {found.hashes.written!r} is none of {', '.join(SCHEMES)}"
    return _election_complaint(found.leader_election)


def _election_complaint(election: LeaderElection) -> str:
    """CFG-05, CFG-06. What leader election is to be like matters only where there is any (CFG-04)."""
    if not election.enabled:
        return ""
    spans = {}
    for field, name in (
        ("lease_duration", "leaseDuration"),
        ("renew_deadline", "renewDeadline"),
        ("retry_period", "retryPeriod"),
    ):
        try:
            spans[field] = election.seconds(field)
        except ValueError as error:
            return f"leaderElection.{name}: {error}"
        if spans[field] <= 0:
            return f"leaderElection.{name}: must be greater than 0"
    if spans["lease_duration"] <= spans["renew_deadline"]:
        return "leaderElection.leaseDuration: must be longer than renewDeadline"
    if spans["renew_deadline"] <= spans["retry_period"]:
        return "leaderElection.renewDeadline: must be longer than retryPeriod, or no renewal could come in time"
    if not election.resource_name:
        return "leaderElection.resourceName: must not be empty"
    return ""
