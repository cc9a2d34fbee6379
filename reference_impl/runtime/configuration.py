"""The operator's configuration: a YAML file of typed settings (docs/spec/api.md, section 13)."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Literal

import msgspec

from reference_impl.plan import durations, kai
from reference_impl.plan.hashing.schemes import CANONICAL, SCHEMES
from reference_impl.plan.hashing.window import Policy
from reference_impl.plan.workload_api.mode import SCHEDULER, Extras, Replacements

DEFAULT_SCHEDULER = SCHEDULER
SCHEDULERS = ("kai-scheduler", DEFAULT_SCHEDULER, "volcano", "lpx-scheduler")
"""The scheduler profiles that Grove knows (CFG-18). The reference's own scheduler is always an additional profile."""


BACKENDS = (kai.SCHEDULER,)
"""The schedulers for which the operator can write their own kinds of objects."""


class InvalidConfigurationError(Exception):
    """A configuration file is invalid. `str()` returns the reason in one line."""


class LogLevel(StrEnum):
    """The lowest level of records that are logged."""

    DEBUG = "debug"
    INFO = "info"
    ERROR = "error"


class LogFormat(StrEnum):
    """The format of log records."""

    JSON = "json"
    TEXT = "text"


class Setting(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Base class of all parts of the configuration."""


class Topology(Setting, frozen=True):
    """Whether sets may have topology constraints (CFG-16)."""

    enabled: bool = False


class Network(Setting, frozen=True):
    """Whether sets may use multi-node NVLink (CFG-17)."""

    auto_mnnvl_enabled: bool = msgspec.field(default=False, name="autoMNNVLEnabled")


class Authorizer(Setting, frozen=True):
    """Whether managed objects are protected, and which users are exempt (CFG-15). The operator is always exempt."""

    enabled: bool = False
    exempt_service_account_user_names: tuple[str, ...] = ()


class ProfileConfig(Setting, frozen=True):
    """The settings of one profile (CFG-20). With `backend` of KAI, or `gangScheduling` of kube-scheduler (WL-H13), the
    operator writes that scheduler's own objects; the last two fields configure gangs on kube-scheduler
    (docs/workload-api.md)."""

    backend: bool = False
    gang_scheduling: bool = False
    extras: Extras = Extras.AFTER_FLOOR
    replacements: Replacements = Replacements.ALONE


class Profile(Setting, frozen=True):
    """A scheduler that sets may name (CFG-18)."""

    name: str = ""
    config: ProfileConfig = ProfileConfig()


class Scheduler(Setting, frozen=True):
    """The schedulers that sets may name, and the default for sets that name no scheduler (CFG-18, CFG-19)."""

    profiles: tuple[Profile, ...] = ()
    default_profile_name: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The enabled profiles, which always include `default-scheduler`."""
        return tuple(dict.fromkeys([*(profile.name for profile in self.profiles), DEFAULT_SCHEDULER]))

    @property
    def default(self) -> str:
        """The scheduler of sets that name no scheduler."""
        return self.default_profile_name or DEFAULT_SCHEDULER

    @property
    def backends(self) -> tuple[str, ...]:
        """The profiles whose own objects the operator writes."""
        return tuple(profile.name for profile in self.profiles if profile.config.backend)

    @property
    def gangs_of_kubernetes(self) -> ProfileConfig | None:
        """The settings of gangs on kube-scheduler, or None if such gangs are not enabled."""
        configs = (profile.config for profile in self.profiles if profile.name == DEFAULT_SCHEDULER)
        return next((config for config in configs if config.gang_scheduling), None)

    def resolve(self, name: str) -> str:
        """Return the scheduler for a name; an empty name stands for the default."""
        return name or self.default


class LeaderElection(Setting, frozen=True):
    """Leader election (CFG-04 to CFG-06). Durations are in Go's notation."""

    enabled: bool = False
    lease_duration: str = "15s"
    renew_deadline: str = "10s"
    retry_period: str = "2s"
    resource_lock: Literal["leases"] = "leases"
    resource_name: str = "grove-operator-leader-election"
    resource_namespace: str = ""

    def seconds(self, field: str) -> float:
        """Return the value of a duration field in seconds. Raises ValueError for an invalid duration."""
        return durations.parse(getattr(self, field)) / 1e9


class Hashes(Setting, frozen=True):
    """The scheme in which template hashes are written, and whether stored hashes of the same template in other schemes
    are recognized as current. Legacy hashes without the window are the behavior of earlier operators
    (docs/hashes.md)."""

    written: str = CANONICAL.name
    window: bool = True

    @property
    def policy(self) -> Policy:
        """The hash policy of this configuration."""
        return Policy(SCHEMES[self.written], tuple(SCHEMES.values()) if self.window else ())


class Configuration(Setting, frozen=True):
    """All settings, with their defaults."""

    log_level: LogLevel = LogLevel.INFO
    log_format: LogFormat = LogFormat.TEXT
    topology_aware_scheduling: Topology = Topology()
    network: Network = Network()
    authorizer: Authorizer = Authorizer()
    scheduler: Scheduler = Scheduler()
    leader_election: LeaderElection = LeaderElection()
    hashes: Hashes = Hashes()


def default_configuration(own_scheduler: str) -> Configuration:
    """Return the configuration that applies without a file."""
    return _with_own_scheduler(Configuration(), own_scheduler)


def load(path: Path, *, own_scheduler: str) -> Configuration:
    """Read a configuration file. `own_scheduler` is always an enabled profile; it is the default profile if the file
    names none. Raises InvalidConfigurationError if the file cannot be read or is invalid."""
    try:
        config = msgspec.yaml.decode(path.read_bytes(), type=Configuration | None) or Configuration()
    except OSError as error:
        raise InvalidConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise InvalidConfigurationError(f"{path}: {' '.join(str(error).split())}") from None
    config = _with_own_scheduler(config, own_scheduler)
    if problem := _problem(config, (*SCHEDULERS, own_scheduler)):
        raise InvalidConfigurationError(f"{path}: {problem}")
    return config


def _with_own_scheduler(config: Configuration, own_scheduler: str) -> Configuration:
    profiles = config.scheduler.profiles
    if own_scheduler not in {profile.name for profile in profiles}:
        profiles = (*profiles, Profile(name=own_scheduler))
    default = config.scheduler.default_profile_name or own_scheduler
    return msgspec.structs.replace(config, scheduler=Scheduler(profiles=profiles, default_profile_name=default))


def _problem(config: Configuration, valid_names: tuple[str, ...]) -> str:
    """Return the first violation of a rule that the types cannot express (CFG-05, CFG-18, CFG-19), or an empty string
    if there is none."""
    names = [profile.name for profile in config.scheduler.profiles]
    for i, name in enumerate(names):
        if name not in valid_names:
            valid = ", ".join(dict.fromkeys(valid_names))
            return f"scheduler.profiles[{i}].name: invalid profile {name!r}: must be one of {valid}"
        if name in names[:i]:
            return f"scheduler.profiles[{i}].name: duplicate profile {name!r}"
        if config.scheduler.profiles[i].config.backend and name not in BACKENDS:
            return f"scheduler.profiles[{i}].config.backend: {name} has none: only {', '.join(BACKENDS)} has"
        if problem := _misplaced_setting(config.scheduler.profiles[i]):
            return f"scheduler.profiles[{i}].config.{problem}"
    if config.scheduler.default not in config.scheduler.names:
        return f"scheduler.defaultProfileName: invalid profile {config.scheduler.default!r}: not among the profiles"
    if config.hashes.written not in SCHEMES:
        return f"hashes.written: invalid scheme {config.hashes.written!r}: must be one of {', '.join(SCHEMES)}"
    return _election_problem(config.leader_election)


def _misplaced_setting(profile: Profile) -> str:
    """Return an error message about a setting that applies only to kube-scheduler, or only to its gangs, or an empty
    string if there is none."""
    config, default_config = profile.config, ProfileConfig()
    if profile.name == DEFAULT_SCHEDULER and config.gang_scheduling:
        return ""
    if config.gang_scheduling:
        return f"gangScheduling: {profile.name} has none: only {DEFAULT_SCHEDULER} has"
    for field in ("extras", "replacements"):
        if getattr(config, field) != getattr(default_config, field):
            return f"{field}: has no effect without gangScheduling: true of {DEFAULT_SCHEDULER}"
    return ""


def _election_problem(election: LeaderElection) -> str:
    """Return the first invalid setting of leader election (CFG-05, CFG-06). Settings are not checked while leader
    election is disabled (CFG-04)."""
    if not election.enabled:
        return ""
    seconds_by_field = {}
    for field, name in (
        ("lease_duration", "leaseDuration"),
        ("renew_deadline", "renewDeadline"),
        ("retry_period", "retryPeriod"),
    ):
        try:
            seconds_by_field[field] = election.seconds(field)
        except ValueError as error:
            return f"leaderElection.{name}: {error}"
        if seconds_by_field[field] <= 0:
            return f"leaderElection.{name}: must be greater than 0"
    if seconds_by_field["lease_duration"] <= seconds_by_field["renew_deadline"]:
        return "leaderElection.leaseDuration: must be longer than renewDeadline"
    if seconds_by_field["renew_deadline"] <= seconds_by_field["retry_period"]:
        return "leaderElection.renewDeadline: must be longer than retryPeriod"
    if not election.resource_name:
        return "leaderElection.resourceName: must not be empty"
    return ""
