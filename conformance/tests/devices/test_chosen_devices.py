"""Tests of which devices claims get, and of pods that share a claim."""

from __future__ import annotations

from conformance.grove import pods
from conformance.grove.expected import expected
from conformance.grove.fields import name
from conformance.testing import devices, predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement

ROOT = "resource.kubernetes.io/pcieRoot"
HOPPER = 'device.attributes["gpu.nvidia.com"].architecture == "Hopper"'


class ClaimsThatSelectDevices(Scene):
    """Two nodes with Hopper GPUs and one with Blackwell GPUs; two GPUs share a PCIe root. A gang of two pods requests
    Hopper GPUs. Each pod of a gang of three requests one GPU, and two more that share a PCIe root. Three pods of
    another gang share one claim."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 2, gpus="devices")
        env.nodes("dgx-b200", 1, gpus="devices")
        hopper = devices.request(selectors=[{"cel": {"expression": HOPPER}}])
        env.create(devices.claim_template("hopper", devices.claim_spec(hopper)))
        requests = (devices.request(1, "one"), devices.request(2, "pair"))
        pair = devices.claim_spec(*requests, constraints=[{"requests": ["pair"], "matchAttribute": ROOT}])
        env.create(devices.claim_template("pair", pair))
        env.create(devices.claim("shared", devices.claim_spec(devices.request(2))))
        self.cliques = {}
        for set_name, count, reference in (
            ("hopper", 2, {"resourceClaimTemplateName": "hopper"}),
            ("pair", 3, {"resourceClaimTemplateName": "pair"}),
            ("shared", 3, {"resourceClaimName": "shared"}),
        ):
            workload = devices.with_claim(env.workload("frontend", setName=set_name, pods=count), reference)
            self.cliques[set_name] = list(expected(workload).cliques.values())
            env.create(workload)
        for set_name in self.cliques:
            env.settle(f"gang {set_name} is ready", predicates.is_available(set_name, 1), 60)
        env.quiet(1)
        env.mark("all gangs placed")


@requirement("DEV-001", reaches=("gang hopper is ready", "gang pair is ready", "gang shared is ready"))
def test_gangs_with_claims_of_each_kind_run(run: Recorded[ClaimsThatSelectDevices]) -> None: ...


@requirement("DEV-006", reaches="gang shared is ready")
def test_pods_that_share_a_claim_run_where_its_devices_are(run: Recorded[ClaimsThatSelectDevices]) -> None:
    view = run.at("all gangs placed")
    claim = view.get("resourceclaims", "shared")
    pools = {pool for _, pool, _ in devices.allocated_devices(claim)} if claim else set()
    (clique,) = run.scene.cliques["shared"]
    nodes = {pods.node(pod) for pod in predicates.pods_of(view, clique.name)}
    run.expect("nodes of the pods that share the claim, and of its devices", pools, nodes)


@requirement("DEV-007", reaches="gang hopper is ready")
def test_selectors_of_requests_hold(run: Recorded[ClaimsThatSelectDevices]) -> None:
    for claim, architectures in _values(run, "hopper", "architecture").items():
        run.expect(f"architectures of the devices of {claim}", [{"string": "Hopper"}], architectures)


@requirement("DEV-008", reaches="gang pair is ready")
def test_devices_of_a_claim_share_an_attribute(run: Recorded[ClaimsThatSelectDevices]) -> None:
    for claim, roots in _values(run, "pair", ROOT, request="pair").items():
        run.expect(f"number of devices of {claim} for the request with the constraint", 2, len(roots))
        run.expect(f"PCIe roots of the devices of {claim}", [roots[0]] * 2 if roots else [], roots)


@requirement("DEV-011", reaches="gang pair is ready")
def test_each_request_of_a_claim_gets_its_number_of_devices(run: Recorded[ClaimsThatSelectDevices]) -> None:
    for request, count in (("one", 1), ("pair", 2)):
        for claim, roots in _values(run, "pair", ROOT, request).items():
            run.expect(f"number of devices of {claim} for the request {request}", count, len(roots))


@requirement("DEV-016", reaches="gang hopper is ready")
def test_allocations_name_the_nodes_of_their_devices(run: Recorded[ClaimsThatSelectDevices]) -> None:
    """A claim without an allocation names no nodes, and is judged by other requirements."""
    view = run.at("all gangs placed")
    for set_name in ("hopper", "shared"):
        (clique,) = run.scene.cliques[set_name]
        for claim, resource in devices.claims_of(view, predicates.pods_of(view, clique.name)).items():
            allocated = devices.allocated_devices(resource or {})
            pools = {pool for _, pool, _ in allocated}
            if allocated:
                run.expect(f"nodes of the devices of {claim}", pools, devices.available_nodes(view, resource or {}))


def _values(
    run: Recorded[ClaimsThatSelectDevices], set_name: str, attribute: str, request: str = ""
) -> dict[str, list[object]]:
    """Return the values of an attribute of the devices of each claim of a set, or of the devices for one request."""
    view = run.at("all gangs placed")
    (clique,) = run.scene.cliques[set_name]
    claims = devices.claims_of(view, predicates.pods_of(view, clique.name))
    return {
        claim: [devices.attributes(view, d).get(attribute) for d in devices.allocated_devices(resource, request)]
        for claim, resource in claims.items()
        if resource is not None and name(resource)
    }
