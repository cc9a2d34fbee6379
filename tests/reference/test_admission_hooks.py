"""Tests that the hooks respond to anything with a verdict and never fail."""

from __future__ import annotations

import base64
import copy
from random import Random

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.grove.admission import examples
from conformance.grove.admission.violation import AdmissionFacts
from reference_impl.admission import authorizer
from reference_impl.admission.errors import aggregate, duplicate, forbidden, invalid, required
from reference_impl.admission.server import Hooks
from reference_impl.runtime.configuration import Authorizer, Configuration
from tests.reference import apiserver

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**70) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
FACTS = AdmissionFacts(topology=True, mnnvl=True, schedulers=(apiserver.SCHEDULER_NAME,), bindings=apiserver.LEVELS)


class Cluster:
    """A cluster with the binding `top`, and with sets by name."""

    def __init__(self, **sets):
        self.sets = sets

    async def levels(self, binding):
        return apiserver.LEVELS.get(binding)

    async def pod_clique_set(self, namespace, name):
        return self.sets.get(name)

    async def labels(self, resource, namespace, name):
        return {"app.kubernetes.io/part-of": name.split("-")[0]} if "-" in name else None


def hooks(cluster=None, **settings):
    configuration = Configuration(
        authorizer=Authorizer(enabled=True, exempt_service_account_user_names=("exempt",)),
        topology_aware_scheduling=apiserver.SETTINGS.topology_aware_scheduling,
        scheduler=apiserver.SETTINGS.scheduler,
    )
    return Hooks(configuration, cluster or Cluster(), "operator")


async def admission_response(path, request, cluster=None):
    capacity = hooks(cluster)
    [hook] = [hook for paths, hook in capacity.by_path.items() if path in paths]
    return (await capacity.review(hook, orjson.dumps({"request": request})))["response"]


def _code(response):
    return 200 if response["allowed"] else response["status"]["code"]


async def _all_hooks(request):
    capacity = hooks()
    for hook in capacity.by_path.values():
        response = (await capacity.review(hook, orjson.dumps({"request": request})))["response"]
        assert _code(response) in (200, 400, 403), response


@settings(max_examples=300, deadline=None)
@given(JSON, JSON)
async def test_every_json_document_gets_a_verdict(new, old):
    try:
        orjson.dumps([new, old])
    except TypeError:  # the API server cannot send an integer that orjson cannot write
        return
    for operation in ("CREATE", "UPDATE"):
        await _all_hooks({"uid": "1", "operation": operation, "object": new, "oldObject": old})


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), JSON)
async def test_a_set_with_arbitrary_values_gets_a_verdict(seed, wrong):
    random = Random(seed)
    pcs = examples.valid_set(random, FACTS)
    spoilt = _spoilt(random, pcs, wrong)
    try:
        orjson.dumps(spoilt)
    except TypeError:
        return
    await _all_hooks({"operation": "UPDATE", "object": spoilt, "oldObject": pcs})
    await _all_hooks({"operation": "CREATE", "object": spoilt})


def _spoilt(random, pcs, wrong):
    """Return a copy in which one value is replaced with `wrong`."""
    changed = copy.deepcopy(pcs)
    places = []

    def walk(value):
        for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
            places.append((value, key))
            walk(value[key])

    walk(changed)
    holder, key = random.choice(places)
    holder[key] = wrong
    return changed


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"{", b'{"request": 5}', b'"\xff"'])
async def test_invalid_reviews_are_rejected(body):
    capacity = hooks()
    for hook in capacity.by_path.values():
        assert _code((await capacity.review(hook, body))["response"]) == 400


async def test_a_failing_hook_is_reported_with_status_500():
    async def broken(request):
        raise KeyError("x")

    response = (await hooks().review(broken, b'{"request": {"uid": "7"}}'))["response"]
    assert response["uid"] == "7" and response["status"]["code"] == 500
    assert response["status"]["message"] == "the hook failed: KeyError: 'x'"


async def test_defaults_are_returned_as_a_patch():
    response = await admission_response("default", {"uid": "1", "object": {"spec": {"template": {}}}})
    assert response["allowed"] and response["patchType"] == "JSONPatch"
    assert {operation["op"] for operation in orjson.loads(base64.b64decode(response["patch"]))} == {"add"}


def test_field_errors_are_formatted_like_those_of_kubernetes():
    errors = [required("a.b", "say it"), invalid("c", 0, "too small"), invalid("c", 0, "too small")]
    assert aggregate(errors) == "[a.b: Required value: say it, c: Invalid value: 0: too small]"
    assert aggregate([duplicate("d", ["x"])]) == 'd: Duplicate value: ["x"]'
    assert aggregate([forbidden("e", "no")]) == "e: Forbidden: no"


# -- changes to metadata (DFT-05) --------------------------------------------------------------------------------------


def _old_set():
    clique = {"name": "a", "spec": {"roleName": "a", "replicas": 1, "podSpec": {"containers": []}}}
    constraint = {"packDomain": "rack"}
    template = {"cliques": [clique], "topologyConstraint": constraint}
    return apiserver.stored(
        {"kind": "PodCliqueSet", "metadata": {"name": "old", "namespace": "ns"}, "spec": {"template": template}}
    )


async def _changed(change):
    old = _old_set()
    new = copy.deepcopy(old)
    change(new)
    return await admission_response("validate-podcliqueset", {"operation": "UPDATE", "object": new, "oldObject": old})


async def test_finalizers_and_labels_of_a_set_without_topology_names_may_change():
    assert (await _changed(lambda pcs: pcs["metadata"].update(finalizers=["x"])))["allowed"]
    assert (await _changed(lambda pcs: pcs["metadata"].update(labels={"a": "b"})))["allowed"]


async def test_a_set_without_topology_names_is_repaired_only_by_naming_its_binding():
    def constraint(pcs):
        return pcs["spec"]["template"]["topologyConstraint"]

    assert (await _changed(lambda pcs: constraint(pcs).update(topologyName="top")))["allowed"]
    assert not (await _changed(lambda pcs: constraint(pcs).update(topologyName="nope")))["allowed"]
    assert not (await _changed(lambda pcs: constraint(pcs).update(topologyName="top", pack={"preferred": "host"})))[
        "allowed"
    ]
    refused = await _changed(lambda pcs: pcs["spec"].update(replicas=3))
    assert "topologyName: Required value" in refused["status"]["message"]


async def test_a_named_pack_domain_may_become_a_required_domain_but_not_vice_versa():
    old = _old_set()
    old["spec"]["template"]["topologyConstraint"]["topologyName"] = "top"
    new = copy.deepcopy(old)
    new["spec"]["template"]["topologyConstraint"] = {"topologyName": "top", "pack": {"required": "rack"}}
    for before, after, allowed in ((old, new, True), (new, old, False)):
        response = await admission_response(
            "validate-podcliqueset", {"operation": "UPDATE", "object": after, "oldObject": before}
        )
        assert response["allowed"] == allowed


# -- the authorizer ----------------------------------------------------------------------------------------------------


def _managed(operation, user="alice", labels=None, kind="PodClique"):
    metadata = {"name": "x", "namespace": "ns", "labels": {"app.kubernetes.io/part-of": "pcs"} | (labels or {})}
    side = "object" if operation == "CREATE" else "oldObject"
    return {
        "operation": operation,
        side: {"metadata": metadata},
        "kind": {"kind": kind},
        "userInfo": {"username": user},
    }


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
async def test_only_the_operator_and_exempt_users_change_managed_objects(operation):
    cluster = Cluster(pcs={"metadata": {}})
    for user, allowed in (("alice", False), ("operator", True), ("exempt", True)):
        assert (await admission_response("authorizer", _managed(operation, user), cluster))["allowed"] == allowed


async def test_every_user_may_delete_pods():
    cluster = Cluster(pcs={"metadata": {}})
    assert (await admission_response("authorizer", _managed("DELETE", kind="Pod"), cluster))["allowed"]
    assert not (await admission_response("authorizer", _managed("UPDATE", kind="Pod"), cluster))["allowed"]


async def test_protection_requires_a_set_and_can_be_disabled():
    assert (await admission_response("authorizer", _managed("CREATE")))["warnings"] == [
        "parent PodCliqueSet pcs not found for resource: ns/x"
    ]
    orphan = _managed("CREATE", labels={"app.kubernetes.io/part-of": ""})
    assert (await admission_response("authorizer", orphan))["warnings"][0].startswith("missing required label")
    for value, allowed in (("true", True), ("TRUE", False)):
        pcs = {"metadata": {"annotations": {authorizer.DISABLE_PROTECTION_ANNOTATION: value}}}
        assert (await admission_response("authorizer", _managed("UPDATE"), Cluster(pcs=pcs)))["allowed"] == allowed
