"""The settings of a cluster, and the configuration for kwokctl that follows from them.

Pure: documents in, documents out. Each choice cites the fact (docs/spec/fake-cluster.md) that justifies it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from conformance.cluster import mutating, stages, users
from conformance.cluster.assets import Assets
from conformance.cluster.features import NO_FEATURES, FeatureRequest, Features
from conformance.cluster.kubelet_sim import node_failure
from conformance.cluster.policies import NO_POLICIES, Policies
from conformance.cluster.ports import Port
from conformance.data import folder
from conformance.grove.kinds import DEFAULT_SCHEDULER, SECOND_SCHEDULER

"""The scheduler name of pods that do not set one."""
READ_VERBS = ["get", "list", "watch"]
WRITE_VERBS = ["create", "update", "patch", "delete", "deletecollection"]
_ETCD = "unix://etcd.sock"
UNUSED_CONTROLLERS = (
    "endpoints-controller",
    "endpointslice-controller",
    "endpointslice-mirroring-controller",
    "ttl-controller",
)
"""Controllers whose writes no component of a fake cluster reads: endpoints are for DNS and kube-proxy (two writes per
pod), and the annotations of the TTL controller are for kubelets (one write per node)."""
NODE_LEASES = "kube-node-lease"
"""The namespace of the Leases of nodes."""
NAMESPACE_OBJECTS_FILE = "namespace-objects.yaml"
"""The file with the objects that each new namespace gets."""
_GATES_FLAG = "feature-gates"
_PROXY_CLIENT_FLAGS = ("proxy-client-cert-file", "proxy-client-key-file")
"""The flags for the client certificate that the API server presents to aggregated API servers. kwokctl uses the
certificate of the components (FC-022). An aggregated server that redirects its connection back to the API server would
make requests as a component, so only the process that serves metrics gets this certificate."""
_ADMISSION_FILE = "admission.yaml"
_GROUP = "config.kwok.x-k8s.io/v1alpha1"


class LoggedReads(StrEnum):
    """The reads that a cluster logs."""

    NONE = "none"
    IMPLEMENTATIONS = "those of implementations: not those of the suite and the components of the cluster"
    ALL = "all"


@dataclass(frozen=True)
class ClusterSettings:
    """Settings of a cluster.

    scheduler: whether kube-scheduler runs. scheduler_name: the name of its profile, so that a gang scheduler can serve
    `default-scheduler`. stages: a folder of `kwok-profiles/stages/`. pods: the behavior of pods that do not name a
    behavior; if it is empty, they become Ready immediately. audit: whether writes are logged. reads: which reads are
    also logged, so that even requests without any effect are known. bodies: whether writes to namespaced objects are
    logged with their bodies. apiserver_port: a port that the user has chosen; 0 uses a port of the cluster's block.
    kubernetes: a pinned version such as 1.37 or 1.37.2; empty for the default version. features: the features that are
    enabled in addition to the defaults. preflight: whether the cluster must prove that it has the features before it is
    used. addons: whether the cluster has StorageClasses and metrics. policies: the policies that the cluster enforces.
    """

    scheduler: bool = True
    scheduler_name: str = DEFAULT_SCHEDULER
    stages: str = "fast"
    pods: str = ""
    audit: bool = True
    reads: LoggedReads = LoggedReads.NONE
    bodies: bool = False
    apiserver_port: int = 0
    kubernetes: str = ""
    features: FeatureRequest = NO_FEATURES
    preflight: bool = True
    addons: bool = False
    policies: Policies = NO_POLICIES


def audit_policy(reads: LoggedReads = LoggedReads.NONE, bodies: bool = False) -> dict[str, Any]:
    """Return the audit policy: writes, without bodies unless `bodies` is set, and the requested reads of resources.
    Leases are omitted, because nodes and operators renew them all the time (FC-106), with two exceptions: KWOK creates
    the Lease of a node, which shows whether somebody prevents that, or another user than the components writes such a
    Lease, which tells KWOK whether to simulate the node. Some writes always have
    bodies: writes of pod statuses, because admission can change the status that the kubelet writes; the few writes that
    can make the API server do this (`mutating`); and the tokens that the components request, which identify them
    (`identities`)."""
    status_writes = {"verbs": WRITE_VERBS, "resources": [{"group": "", "resources": ["pods/status"]}]}
    risky_writes = {"verbs": WRITE_VERBS, "resources": mutating.resources()}
    leases = {"resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}]}
    node_leases = {"namespaces": [NODE_LEASES], **leases}
    token_requests = {"users": [users.COMPONENT], "resources": [{"group": "", "resources": ["serviceaccounts/token"]}]}
    excluded: list[dict[str, Any]] = [{"verbs": READ_VERBS}]
    if reads is not LoggedReads.NONE:
        excluded = [{"nonResourceURLs": ["*"]}]
    if reads is LoggedReads.IMPLEMENTATIONS:
        excluded += [{"users": [*users.COMPONENTS, users.SUITE], "verbs": READ_VERBS}]
        excluded += [{"userGroups": [users.CONTROLLERS], "verbs": READ_VERBS}]
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "Metadata", "verbs": ["create"], **node_leases},
            {"level": "None", "users": [*users.COMPONENTS, users.SUITE], **leases},
            {"level": "Metadata", "verbs": WRITE_VERBS, **node_leases},
            {"level": "None", **leases},
            *({"level": "None", **rule} for rule in excluded),
            *([{"level": "RequestResponse", "verbs": WRITE_VERBS, "omitManagedFields": True}] if bodies else []),
            *([] if bodies else [{"level": "RequestResponse", "omitManagedFields": True, **status_writes}]),
            *([] if bodies else [{"level": "RequestResponse", **token_requests}]),
            # The objects that the suite installs are known, and they are large.
            *([] if bodies else [{"level": "Metadata", "users": [users.SUITE], **risky_writes}]),
            *([] if bodies else [{"level": "RequestResponse", "omitManagedFields": True, **risky_writes}]),
            {"level": "Metadata"},
        ],
    }


def scheduler_configuration(name: str, *more_names: str) -> dict[str, Any]:
    """Return the configuration of kube-scheduler with a profile for each name (FC-011).

    The client limits are repeated here, because a scheduler with a configuration file ignores the flags that FC-013
    sets and would bind only 50 pods per second. The scheduler's own work must not grow with the square of the cluster
    size. Therefore it scores only a hundred suitable nodes, which is the minimum, instead of up to half of all nodes.
    By default it would also search all Services of the namespace for each pod, in order to spread the pods of a
    Service; this is disabled.
    """
    spread_arguments = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "PodTopologySpreadArgs",
        "defaultingType": "List",
        "defaultConstraints": [],
    }
    plugins = [{"name": "PodTopologySpread", "args": spread_arguments}]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": 5000, "burst": 10000},
        "percentageOfNodesToScore": 1,
        "profiles": [{"schedulerName": profile_name, "pluginConfig": plugins} for profile_name in (name, *more_names)],
    }


KWOK_OPTIONS = {
    "cidr": "10.0.0.0/16",  # FC-085: KWOK assigns addresses beyond the end of a /24
    "podPlayStageParallelism": 16,
    "nodePlayStageParallelism": 8,
    "nodeLeaseParallelism": 8,
    "podsOnNodeSyncParallelism": 4,
    "enablePodsOnNodeSyncListPager": True,
    "enableDebuggingHandlers": True,  # for logs; without a ClusterExec, nothing is executed
}
"""The options of KWOK: all of them, because they have no individual defaults (FC-031)."""


def kwokctl_configuration(
    settings: ClusterSettings,
    features: Features,
    assets: Assets,
    ports: Mapping[Port, int],
    versions: Mapping[str, str],
    directory: Path,
    memory: int,
) -> list[dict[str, Any]]:
    """Return the documents of kwokctl's `--config` file. The files that it names are in `directory`: see `extra_files`.
    `memory` is the memory of the machine in GiB."""
    options: dict[str, Any] = {
        "runtime": "binary",
        "bindAddress": "127.0.0.1",  # FC-006: the default is every interface, unauthenticated
        "kubeVersion": f"v{versions['kubernetes']}",
        "etcdVersion": versions["etcd"],
        "etcdBinary": str(assets.etcd),
        "kubeApiserverBinary": str(assets.kube_apiserver),
        "kubeControllerManagerBinary": str(assets.kube_controller_manager),
        "kubeSchedulerBinary": str(assets.kube_scheduler),
        "kwokControllerBinary": str(assets.kwok),
        "kubectlBinary": str(assets.kubectl),
        # FC-007: the free ports that kwokctl itself chooses can collide with another cluster's ports.
        "kubeApiserverPort": ports[Port.APISERVER],
        "etcdPort": ports[Port.ETCD],
        "etcdPeerPort": ports[Port.ETCD_PEER],
        "kubeControllerManagerPort": ports[Port.CONTROLLER_MANAGER],
        "kubeSchedulerPort": ports[Port.SCHEDULER],
        "kwokControllerPort": ports[Port.KWOK],
        "disableQPSLimits": True,  # FC-013
        "heartbeatFactor": 1,  # FC-014: taints follow a failed node within 5 s, not 25 s
    }
    if settings.audit:
        options["kubeAuditPolicy"] = str(directory / "audit-policy.yaml")
    if settings.scheduler:
        options["kubeSchedulerConfig"] = str(directory / "scheduler-config.yaml")
    else:
        options["disable"] = ["kube-scheduler"]
    return [
        {
            "apiVersion": _GROUP,
            "kind": "KwokctlConfiguration",
            "options": options,
            "componentsPatches": _component_flags(
                features, ports, memory, _admission_flags(settings, directory), settings.addons
            ),
        },
        {"apiVersion": _GROUP, "kind": "KwokConfiguration", "options": KWOK_OPTIONS},
        {
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "ClusterLogs",
            "metadata": {"name": "every-pod"},
            "spec": {"logs": [{"logsFile": str(folder("kwok-profiles") / "pods.log")}]},
        },
        *stages.load(settings.stages, settings.pods),
    ]


def extra_files(settings: ClusterSettings) -> dict[str, dict[str, Any]]:
    """Return the files that the configuration names: maps file names to documents."""
    files = {"audit-policy.yaml": audit_policy(settings.reads, settings.bodies)} if settings.audit else {}
    if settings.scheduler:
        more_names = (SECOND_SCHEDULER,) if settings.features else ()
        files["scheduler-config.yaml"] = scheduler_configuration(settings.scheduler_name, *more_names)
    if configuration := settings.policies.configuration:
        files[_ADMISSION_FILE] = dict(configuration)
    if objects := settings.policies.objects_without_namespace:
        files[NAMESPACE_OBJECTS_FILE] = {"objects": objects}
    return files


def _admission_flags(settings: ClusterSettings, directory: Path) -> Mapping[str, str]:
    """Return the API server's flags for the policies of a cluster."""
    return (
        {"admission-control-config-file": str(directory / _ADMISSION_FILE)} if settings.policies.configuration else {}
    )


def _overrides(addons: bool) -> Mapping[str, Mapping[str, str]]:
    """Return the flags that replace flags of kwokctl."""
    # etcd does not authenticate clients, and every user of the machine can connect to a port on loopback. Therefore
    # etcd listens on sockets in the cluster's folder (with relative paths, because socket paths must be short), and its
    # port serves only /health and /metrics.
    return {
        "etcd": {"listen-client-urls": _ETCD, "listen-peer-urls": "unix://etcd-peer.sock"},
        "kube-apiserver": {"etcd-servers": _ETCD, **({} if addons else dict.fromkeys(_PROXY_CLIENT_FLAGS, ""))},
        # Nodes fail immediately, by a label (`node_failure`), and never by silence: a busy machine renews the leases of
        # a thousand nodes too late, and their pods would become not Ready. Longer leases also cost fewer writes.
        "kwok-controller": {"node-lease-duration-seconds": "200"},
        "kube-controller-manager": {"node-monitor-grace-period": "1h"},
    }


def _component_flags(
    features: Features, ports: Mapping[Port, int], memory: int, admission: Mapping[str, str], addons: bool
) -> Sequence[Mapping[str, Any]]:
    flags = {
        "etcd": {"unsafe-no-fsync": "true"},  # FC-101: data need not survive a crash of the host
        "kube-apiserver": {
            "anonymous-auth": "false",  # FC-103
            "service-cluster-ip-range": "10.96.0.0/16",
            "kubelet-preferred-address-types": "ExternalDNS,InternalIP",  # KWOK responds at the first one (nodes.yaml)
            "audit-log-maxsize": "100000",  # MB; the default of 100 would rotate the log during a run
            # There is only one API server, and nothing reads endpoints. Both features would continuously renew a record
            # in etcd that no watch shows, so a recorder could not tell from revisions whether it has received
            # everything.
            "endpoint-reconciler-type": "none",
            _GATES_FLAG: "UnknownVersionInteroperabilityProxy=false",
            **admission,
        },
        "kube-controller-manager": {
            "concurrent-gc-syncs": "40",  # FC-108
            "leader-elect": "false",  # there is only one; after a kill, its successor would wait 18 s
            # As on most clusters, each controller is a separate user: a policy can apply to the garbage collector
            # alone.
            "use-service-account-credentials": "true",
            "controllers": ",".join(("*", *(f"-{controller}" for controller in UNUSED_CONTROLLERS))),
        },
        # Failure bundles then contain the scheduler's messages: where it bound each pod, and which pods it could not
        # bind.
        "kube-scheduler": {"v": "2"},
        # kwokctl's default is true. A node that gets the label of failed nodes is ignored by KWOK from then on, and so
        # are its pods. (A Lease with another holder would not suffice: KWOK starts its controllers for nodes and for
        # pods in no fixed order, and if the controller for pods starts first, it never checks the holder.)
        "kwok-controller": {"manage-all-nodes": "false", "manage-nodes-with-label-selector": node_failure.SELECTOR},
    }
    for component, feature_flags in features.flags().items():
        gates_of_suite = flags[component].get(_GATES_FLAG)
        flags[component] |= feature_flags
        if gates_of_suite is not None and _GATES_FLAG in feature_flags:
            # If a gate is set twice, the last value counts.
            flags[component][_GATES_FLAG] = f"{gates_of_suite},{feature_flags[_GATES_FLAG]}"
    flags["etcd"]["listen-metrics-urls"] = f"http://127.0.0.1:{ports[Port.ETCD]}"
    # The API server spends much of its time on garbage collection, and memory is less scarce. So collections are rare
    # up to a heap size that the machine can afford (1.6 GiB at a thousand pods), and normal above it. The heaps of the
    # other components are small.
    overrides, limit = _overrides(addons), f"{max(3, memory // 4)}GiB"
    rare_collections = {"name": "GOGC", "value": "400"}
    environment = {"kube-apiserver": [rare_collections, {"name": "GOMEMLIMIT", "value": limit}]}
    return [
        {
            "name": component,
            "extraArgs": [
                *({"key": key, "value": value} for key, value in arguments.items()),
                *(
                    {"key": key, "value": value, "override": True}
                    for key, value in overrides.get(component, {}).items()
                ),
            ],
            "extraEnvs": environment.get(component, [rare_collections]),
        }
        for component, arguments in flags.items()
    ]
