"""A gang scheduler of two programs: `toy_scheduler.py decide|bind KUBECONFIG PORT FAULT`.

`decide` listens on PORT and writes a Placement for each pod of a gang in a queue, once all pods of the gang exist.
`bind` ends if no process listens on PORT; otherwise, it binds pods to the nodes of their Placements.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from typing import Any

from kube.client import Client
from kube.errors import ApiError
from kube.resource import NODES, PODS, Resource

PODGANGS = Resource("scheduler.grove.io", "v1alpha1", "podgangs", "PodGang")
PLACEMENTS = Resource("toy.example", "v1", "placements", "Placement")
QUEUES = Resource("toy.example", "v1", "queues", "Queue", namespaced=False)
QUEUE = "toy.example/queue"
PERIOD = 0.2


async def decide(client: Client) -> None:
    """Place every gang once all of its pods exist and have no gates."""
    queues = {queue["metadata"]["name"] for queue in await client.list(QUEUES)}
    pods = {_key(pod): pod for pod in await client.list(PODS)}
    placed = {_key(placement) for placement in await client.list(PLACEMENTS)}
    nodes = await client.list(NODES)
    for gang in await client.list(PODGANGS):
        names = [
            (ref["namespace"], ref["name"]) for group in gang["spec"]["podgroups"] for ref in group["podReferences"]
        ]
        members = [pods[name] for name in names if name in pods and not pods[name]["spec"].get("schedulingGates")]
        queued = {item["metadata"].get("labels", {}).get(QUEUE) for item in (gang, *members)}
        if len(members) == len(names) and queued <= queues:
            for pod in members:
                if _key(pod) not in placed and not pod["spec"].get("nodeName"):
                    await _place(client, pod, nodes)


async def _place(client: Client, pod: dict[str, Any], nodes: list[dict[str, Any]]) -> None:
    selected = pod["spec"].get("nodeSelector", {}).items()
    fitting = [node["metadata"]["name"] for node in nodes if selected <= node["metadata"]["labels"].items()]
    if fitting:
        namespace, name = _key(pod)
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod["metadata"]["uid"]}
        metadata = {"name": name, "namespace": namespace, "ownerReferences": [owner]}
        spec = {"pod": name, "node": fitting[0]}
        await client.create(PLACEMENTS, {**_type(PLACEMENTS), "metadata": metadata, "spec": spec})
        logging.info("decided: %s on %s", name, fitting[0])


async def bind(client: Client) -> None:
    """Bind the pods of all Placements."""
    waiting = {_key(pod) for pod in await client.list(PODS) if not pod["spec"].get("nodeName")}
    for placement in await client.list(PLACEMENTS):
        namespace, name = _key(placement)
        if (namespace, name) in waiting:
            target = {"apiVersion": "v1", "kind": "Node", "name": placement["spec"]["node"]}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
            await client.request("POST", PODS.path(namespace, name, "binding"), body=body)
            logging.info("bound: %s", name)


def _key(obj: dict[str, Any]) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def _type(resource: Resource) -> dict[str, str]:
    return {"apiVersion": resource.api_version, "kind": resource.kind}


async def _answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.0 200 OK\r\n\r\n")
    writer.close()


async def main(part: str, kubeconfig: str, port: int, fault: str) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, sys.exit)
    async with Client.from_kubeconfig(kubeconfig, user_agent=f"toy-scheduler-{part}") as client:
        if part == "decide":
            server = await asyncio.start_server(_answer, "127.0.0.1", port)
            logging.info("deciding, %s", server.sockets[0].getsockname())
        else:
            (await asyncio.open_connection("127.0.0.1", port))[1].close()
            logging.info("binding")
        if fault == "deaf":
            logging.info("the queue is closed")
            await asyncio.Event().wait()
        while True:
            try:
                await (decide if part == "decide" else bind)(client)
            except ApiError as error:
                logging.info("again, because of %s", error)
            await asyncio.sleep(PERIOD)


if __name__ == "__main__":
    part, kubeconfig, port, fault = sys.argv[1:]
    logging.basicConfig(format="%(message)s", level=logging.INFO, stream=sys.stdout)
    if (part, fault) == ("bind", "dies"):
        logging.info("panic: no queue for me\n\n%s", "goroutine 1 [running]:\n" * 40)
        sys.exit(2)
    asyncio.run(main(part, kubeconfig, int(port), fault))
