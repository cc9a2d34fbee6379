"""A stand-in for the kubelet of one node: it runs the containers of its pods as processes on this machine, probes and
restarts them, and serves their logs. It does only what the tests of deployed implementations need."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from conformance.cluster import nodes
from conformance.cluster.kubelet_sim import status
from conformance.implementation.certificates import Certificates
from kube.client import MERGE_PATCH, Client
from kube.errors import ApiError
from kube.resource import NODES, PODS

NODE = "stand-in"
CHECK_INTERVAL = 0.1


class StandIn:
    """The node and its pods. `folder` holds the pods' logs and a certificate."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self._kubeconfig, self._folder = kubeconfig, folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        """Processes by the uid of their pod."""
        self._restarts: dict[str, int] = {}
        self._codes: dict[str, int] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._server = self._log_server()

    @contextlib.contextmanager
    def running(self) -> Iterator[StandIn]:
        """Run the node; at the end, kill every process."""
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._thread.start()
        try:
            yield self
        finally:
            self._stopped.set()
            self._thread.join()
            self._server.shutdown()
            self._server.server_close()
            for process in self.processes.values():
                process.kill()
                process.wait()

    async def _run(self) -> None:
        async with Client.from_kubeconfig(self._kubeconfig, user_agent=NODE) as client:
            await self._make_node(client)
            while True:
                if self._stopped.is_set():
                    break
                await self._look(client)
                await asyncio.sleep(CHECK_INTERVAL)
            await client.delete(NODES, None, NODE)

    async def _make_node(self, client: Client) -> None:
        node = nodes.node_manifest(nodes.profile("tiny"), 0)
        metadata = {**node["metadata"], "name": NODE, "annotations": {"conformance.grove.io/hold-status": "yes"}}
        metadata["labels"] = {**metadata["labels"], nodes.HOSTNAME: NODE}
        await client.create(NODES, {**node, "metadata": metadata})
        now = status.now()
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": now, "lastHeartbeatTime": now}
        body = {
            "status": {
                **node["status"],
                "conditions": [ready],
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": self._server.server_port}},
            }
        }
        await client.patch(NODES, None, NODE, body, content_type=MERGE_PATCH, subresource="status")

    async def _look(self, client: Client) -> None:
        pods = [pod for pod in await client.list(PODS) if pod["spec"].get("nodeName") == NODE]
        uids = {pod["metadata"]["uid"] for pod in pods}
        for uid in set(self.processes) - uids:  # deleted without a grace period
            self._end(uid, kill=True)
        for pod in pods:
            try:
                await self._play(client, pod)
            except ApiError as error:
                if not (error.not_found or error.conflict):
                    raise

    async def _play(self, client: Client, pod: dict[str, Any]) -> None:
        metadata, uid = pod["metadata"], pod["metadata"]["uid"]
        if metadata.get("deletionTimestamp"):
            self._end(uid, kill=False)
            await client.delete(PODS, metadata["namespace"], metadata["name"], uid=uid, grace_seconds=0)
            return
        process = self.processes.get(uid)
        if process is None or process.poll() is not None:
            if process is not None:
                self._codes[uid] = process.returncode if process.returncode >= 0 else 128 - process.returncode
                self._restarts[uid] = self._restarts.get(uid, 0) + 1
            self._start(pod)
        (container,) = pod["spec"]["containers"]
        ready = await asyncio.to_thread(_answers, container["readinessProbe"]["httpGet"])
        desired = self._status(pod, container, ready)
        if _shape(desired) != _shape(pod.get("status") or {}):
            place = (metadata["namespace"], metadata["name"])
            await client.patch(PODS, *place, {"status": desired}, content_type=MERGE_PATCH, subresource="status")

    def _status(self, pod: dict[str, Any], container: dict[str, Any], ready: bool) -> dict[str, Any]:
        uid, now = pod["metadata"]["uid"], status.now()
        last = {"terminated": {"exitCode": self._codes[uid], "finishedAt": now}} if uid in self._codes else {}
        container_status = {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": ready,
            "restartCount": self._restarts.get(uid, 0),
            "state": {"running": {"startedAt": now}},
            "lastState": last,
        }
        condition_states = {"PodScheduled": True, "Initialized": True, "ContainersReady": ready, "Ready": ready}
        conditions = [
            {"type": condition_type, "status": str(is_true), "lastTransitionTime": now}
            for condition_type, is_true in condition_states.items()
        ]
        return {"phase": "Running", "conditions": conditions, "containerStatuses": [container_status]}

    def _start(self, pod: dict[str, Any]) -> None:
        (container,) = pod["spec"]["containers"]
        uid = pod["metadata"]["uid"]
        with self._log(pod["metadata"]["name"]).open("ab") as log:
            self.processes[uid] = subprocess.Popen(
                [*container["command"], *container.get("args", [])], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _end(self, uid: str, *, kill: bool) -> None:
        if (process := self.processes.pop(uid, None)) is not None:
            process.kill() if kill else process.terminate()
            process.wait()

    def _log(self, pod: str) -> Path:
        return self._folder / f"{pod}.log"

    def _log_server(self) -> ThreadingHTTPServer:
        log = self._log

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # /containerLogs/NAMESPACE/POD/CONTAINER
                path = log(self.path.split("/")[3])
                body = path.read_bytes() if path.exists() else b""
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        folder = Certificates(self._folder / "certificates").ensure()
        tls.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        return server


def _answers(probe: dict[str, Any]) -> bool:
    url = f"http://{probe['host']}:{probe['port']}{probe['path']}"
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _shape(pod_status: dict[str, Any]) -> object:
    """Return the parts of a status that are compared: the phase, and readiness and restarts of each container."""
    containers = [(c["ready"], c["restartCount"]) for c in pod_status.get("containerStatuses") or []]
    return pod_status.get("phase"), containers
