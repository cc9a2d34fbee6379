"""Tests of the forms in which claims request devices: alternatives, all devices, numbers, and devices that differ."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.grove.expected import expected
from conformance.grove.fields import items
from conformance.suite.scenes.api import Object
from conformance.testing import devices, observed, predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement

ROOT = "resource.kubernetes.io/pcieRoot"
WAITING_FORMS = ("all-of-node", "partition")
"""Forms that cannot be met."""
PARAMETERS = {
    "driver": devices.DRIVER,
    "parameters": {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"},
}


class ClaimsOfEachForm(Scene):
    """One node with eight GPUs, of which two each share a PCIe root. Gangs of one pod get their devices one after the
    other: all devices of a root; two devices of different roots; a device of each of two roots; and a device of a root
    that is only the second of three alternatives, because the first does not exist. While one device is free, a gang
    requests all devices of the node, and another a device of a class that no device belongs to. They are deleted before
    the last gang gets the device, so that it need not overtake them."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 1, gpus="devices")
        ampere = _selector('device.attributes["gpu.nvidia.com"].architecture == "Ampere"')
        alternatives = [
            {"name": f"choice-{index}", "deviceClassName": devices.CLASS, "selectors": [selector]}
            for index, selector in enumerate((ampere, _of_root(2), _of_root(3)))
        ]
        everything = devices.request(allocationMode="All")
        del everything["exactly"]["count"]
        forms: dict[str, tuple[Sequence[Object], Sequence[Object]]] = {
            "all-of-root": ([_all_of_root(1)], ()),
            "distinct": ([devices.request(2)], [{"distinctAttribute": ROOT}]),
            "second-request": ([_one_of_root(0, "one"), _one_of_root(3, "other")], ()),
            "alternatives": ([{"name": "gpu", "firstAvailable": alternatives}], ()),
            "all-of-node": ([everything], ()),
            "partition": ([{"name": "gpu", "exactly": {"deviceClassName": devices.PARTITION_CLASS}}], ()),
            "without-count": ([{"name": "gpu", "exactly": {"deviceClassName": devices.CLASS}}], ()),
        }
        self.cliques = {}
        for form, (requests, constraints) in forms.items():
            fields = {
                "constraints": list(constraints),
                "config": [{"opaque": PARAMETERS}] if form == "without-count" else [],
            }
            env.create(devices.claim_template(form, devices.claim_spec(*requests, **fields)))
            workload = env.workload("frontend", setName=form, pods=1)
            workload = devices.with_claim(workload, {"resourceClaimTemplateName": form})
            (self.cliques[form],) = expected(workload).cliques.values()
            if form == "without-count":
                self._remove_waiting_gangs(env)
            env.create(workload)
            if form in WAITING_FORMS:
                env.wait_for(f"gang {form} ungated", predicates.all_ungated([self.cliques[form]]))
            else:
                env.settle(f"gang {form} bound", predicates.all_bound([self.cliques[form]]), 60)
        env.mark("gangs placed")

    def _remove_waiting_gangs(self, env: SceneEnvironment) -> None:
        env.quiet(1)
        env.mark("two gangs wait")
        for form in WAITING_FORMS:
            env.delete("podcliquesets", form)
        names = [self.cliques[form].name for form in WAITING_FORMS]
        env.wait_for("no gang waits", observed.are_absent("podcliques", names))


@requirement("DEV-007", reaches="gang second-request bound")
def test_selectors_of_each_request_and_class_hold(run: Recorded[ClaimsOfEachForm]) -> None:
    run.expect("PCIe roots of the request with a selector", ["pci0000:03"], _roots(run, "second-request", "other"))
    run.expect("devices of a class without devices", [], _devices(run, "partition"))


@requirement("DEV-009", reaches="gang alternatives bound")
def test_the_first_available_alternative_is_taken(run: Recorded[ClaimsOfEachForm]) -> None:
    claim = _claim(run, "alternatives")
    results = items(claim, "status", "allocation", "devices", "results")
    run.expect("requests of the allocation", ["gpu/choice-1"], [result.get("request") for result in results])
    run.expect("PCIe roots of the devices", ["pci0000:02"], _roots(run, "alternatives"))


@requirement("DEV-010", reaches="gang all-of-root bound")
def test_all_devices_are_allocated_or_none(run: Recorded[ClaimsOfEachForm]) -> None:
    names = sorted(device for _, _, device in _devices(run, "all-of-root"))
    run.expect("devices of the request for all devices of a root", ["gpu-2", "gpu-3"], names)
    run.expect("devices of the request for all devices of the node, of which some are taken", [],
               _devices(run, "all-of-node"))  # fmt: skip
    count = predicates.bound_counts(run.at("two gangs wait"), [run.scene.cliques["all-of-node"]])
    run.expect("bound pods of the gang that requests all devices of the node", 0, sum(count.values()))


@requirement("DEV-011", reaches="gang without-count bound")
def test_a_request_without_a_number_gets_one_device(run: Recorded[ClaimsOfEachForm]) -> None:
    run.expect("number of devices of a request without a number", 1, len(_devices(run, "without-count")))


@requirement("DEV-033", reaches="gang without-count bound")
def test_an_allocation_has_the_parameters_of_its_claim(run: Recorded[ClaimsOfEachForm]) -> None:
    configuration = items(_claim(run, "without-count"), "status", "allocation", "devices", "config")
    stated = [
        entry.get("opaque")
        for entry in configuration
        if entry.get("source") == "FromClaim" and "gpu" in (entry.get("requests") or ["gpu"])
    ]
    run.expect("the allocation has the parameters of its claim", True, PARAMETERS in stated or stated)


@requirement("DEV-012", reaches="gang distinct bound")
def test_devices_of_a_claim_differ_in_an_attribute(run: Recorded[ClaimsOfEachForm]) -> None:
    run.expect("number of different PCIe roots", 2, len(set(_roots(run, "distinct"))))


def _selector(expression: str) -> Object:
    return {"cel": {"expression": expression}}


def _of_root(number: int) -> Object:
    """Return a selector for the devices of a PCIe root."""
    return _selector(f'device.attributes["resource.kubernetes.io"].pcieRoot == "pci0000:{number:02}"')


def _all_of_root(number: int) -> Object:
    return {
        "name": "gpu",
        "exactly": {"deviceClassName": devices.CLASS, "allocationMode": "All", "selectors": [_of_root(number)]},
    }


def _one_of_root(number: int, request: str) -> Object:
    return devices.request(1, request, selectors=[_of_root(number)])


def _claim(run: Recorded[ClaimsOfEachForm], form: str) -> Object:
    """Return the claim of the only pod of a gang; empty if it does not exist."""
    view = run.at("two gangs wait" if form in WAITING_FORMS else "gangs placed")
    claims = devices.claims_of(view, predicates.pods_of(view, run.scene.cliques[form].name))
    (claim,) = claims.values() or (None,)
    return dict(claim or {})


def _devices(run: Recorded[ClaimsOfEachForm], form: str, request: str = "") -> list[devices.Device]:
    return devices.allocated_devices(_claim(run, form), request)


def _roots(run: Recorded[ClaimsOfEachForm], form: str, request: str = "") -> list[str]:
    """Return the PCIe roots of the devices of a gang, or of its devices for one request."""
    view = run.at("gangs placed")
    published = (devices.attributes(view, device) for device in _devices(run, form, request))
    return [str((attributes.get(ROOT) or {}).get("string", "")) for attributes in published]
