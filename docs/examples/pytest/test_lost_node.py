"""Tests that a pod on a failed node is no longer Ready, on a fake cluster with the reference operator."""

from kubernetes.client import CoreV1Api, CustomObjectsApi

POD = {"containers": [{"name": "main", "image": "web"}]}
CLIQUE = {"name": "web", "spec": {"roleName": "web", "replicas": 2, "podSpec": POD}}
SET = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": "shop"}}


def test_a_pod_of_a_lost_node_is_not_ready(grove_cluster, grove_namespace):
    grove_cluster.add_nodes("tiny:3")
    core, grove = CoreV1Api(grove_cluster.client), CustomObjectsApi(grove_cluster.client)
    clique = CLIQUE | {"annotations": grove_cluster.behavior("realistic", ready_after="1s")}
    spec = {"replicas": 1, "template": {"cliques": [clique]}}
    grove.create_namespaced_custom_object(
        "grove.io", "v1alpha1", grove_namespace, "podcliquesets", SET | {"spec": spec}
    )

    def ready():
        pods = core.list_namespaced_pod(grove_namespace).items
        return [p for p in pods for c in p.status.conditions or [] if (c.type, c.status) == ("Ready", "True")]

    grove_cluster.wait_for("both pods are Ready", lambda: len(ready()) == 2)
    grove_cluster.fail_node(ready()[0].spec.node_name)
    grove_cluster.wait_for("a pod is no longer Ready", lambda: len(ready()) < 2)
