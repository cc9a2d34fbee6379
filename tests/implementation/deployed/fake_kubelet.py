"""A fake kubelet for one node: it runs the containers of the node's pods as processes on this machine, probes and
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

from conformance.cluster import node_profiles, nodes
from conformance.cluster.kubelet_sim import status
from conformance.implementation.certificates import Certificates
from kube.client import MERGE_PATCH, Client
from kube.errors import ApiError
from kube.resource import NODES, PODS

NODE = "stand-in"
CHECK_INTERVAL_SECONDS = 0.1


class FakeKubelet:
    """The kubelet of a node. `folder` contains the logs of its pods and a certificate."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self._kubeconfig, self._folder = kubeconfig, folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        """Processes by pod UID."""
        self._restarts: dict[str, int] = {}
        self._exit_codes: dict[str, int] = {}
        self._stop_requested = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._server = self._create_log_server()

    @contextlib.contextmanager
    def run_node(self) -> Iterator[FakeKubelet]:
        """Run the node in the block, and kill every process at the end of the block."""
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._thread.start()
        try:
            yield self
        finally:
            self._stop_requested.set()
            self._thread.join()
            self._server.shutdown()
            self._server.server_close()
            for process in self.processes.values():
                process.kill()
                process.wait()

    async def _run(self) -> None:
        async with Client.from_kubeconfig(self._kubeconfig, user_agent=NODE) as client:
            await self._create_node(client)
            while True:
                if self._stop_requested.is_set():
                    break
                await self._sync_pods(client)
                await asyncio.sleep(CHECK_INTERVAL_SECONDS)
            await client.delete(NODES, None, NODE)

    async def _create_node(self, client: Client) -> None:
        node = nodes.node_manifest(node_profiles.profile("tiny"), 0)
        metadata = {**node["metadata"], "name": NODE, "annotations": {"conformance.grove.io/hold-status": "yes"}}
        metadata["labels"] = {**metadata["labels"], nodes.HOSTNAME: NODE}
        await client.create(NODES, {**node, "metadata": metadata})
        now = status.now()
        ready_condition = {"type": "Ready", "status": "True", "lastTransitionTime": now, "lastHeartbeatTime": now}
        body = {
            "status": {
                **node["status"],
                "conditions": [ready_condition],
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": self._server.server_port}},
            }
        }
        await client.patch(NODES, None, NODE, body, content_type=MERGE_PATCH, subresource="status")

    async def _sync_pods(self, client: Client) -> None:
        pods = [pod for pod in await client.list(PODS) if pod["spec"].get("nodeName") == NODE]
        uids = {pod["metadata"]["uid"] for pod in pods}
        for uid in set(self.processes) - uids:  # deleted without a grace period
            self._end_process(uid, kill=True)
        for pod in pods:
            try:
                await self._sync_pod(client, pod)
            except ApiError as error:
                if not (error.not_found or error.conflict):
                    raise

    async def _sync_pod(self, client: Client, pod: dict[str, Any]) -> None:
        metadata, uid = pod["metadata"], pod["metadata"]["uid"]
        if metadata.get("deletionTimestamp"):
            self._end_process(uid, kill=False)
            await client.delete(PODS, metadata["namespace"], metadata["name"], uid=uid, grace_seconds=0)
            return
        process = self.processes.get(uid)
        if process is None or process.poll() is not None:
            if process is not None:
                self._exit_codes[uid] = process.returncode if process.returncode >= 0 else 128 - process.returncode
                self._restarts[uid] = self._restarts.get(uid, 0) + 1
            self._start_container(pod)
        (container,) = pod["spec"]["containers"]
        is_ready = await asyncio.to_thread(_is_ready, container["readinessProbe"]["httpGet"])
        desired_status = self._pod_status(pod, container, is_ready)
        if _compared_parts(desired_status) != _compared_parts(pod.get("status") or {}):
            pod_key = (metadata["namespace"], metadata["name"])
            await client.patch(
                PODS, *pod_key, {"status": desired_status}, content_type=MERGE_PATCH, subresource="status"
            )

    def _pod_status(self, pod: dict[str, Any], container: dict[str, Any], is_ready: bool) -> dict[str, Any]:
        uid, now = pod["metadata"]["uid"], status.now()
        last_state = (
            {"terminated": {"exitCode": self._exit_codes[uid], "finishedAt": now}} if uid in self._exit_codes else {}
        )
        container_status = {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": is_ready,
            "restartCount": self._restarts.get(uid, 0),
            "state": {"running": {"startedAt": now}},
            "lastState": last_state,
        }
        condition_states = {"PodScheduled": True, "Initialized": True, "ContainersReady": is_ready, "Ready": is_ready}
        conditions = [
            {"type": condition_type, "status": str(is_true), "lastTransitionTime": now}
            for condition_type, is_true in condition_states.items()
        ]
        return {"phase": "Running", "conditions": conditions, "containerStatuses": [container_status]}

    def _start_container(self, pod: dict[str, Any]) -> None:
        (container,) = pod["spec"]["containers"]
        uid = pod["metadata"]["uid"]
        with self._log_path(pod["metadata"]["name"]).open("ab") as log:
            self.processes[uid] = subprocess.Popen(
                [*container["command"], *container.get("args", [])], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _end_process(self, uid: str, *, kill: bool) -> None:
        if (process := self.processes.pop(uid, None)) is not None:
            process.kill() if kill else process.terminate()
            process.wait()

    def _log_path(self, pod: str) -> Path:
        return self._folder / f"{pod}.log"

    def _create_log_server(self) -> ThreadingHTTPServer:
        log = self._log_path

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
        tls_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        folder = Certificates(self._folder / "certificates").ensure()
        tls_context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        server.socket = tls_context.wrap_socket(server.socket, server_side=True)
        return server


def _is_ready(probe: dict[str, Any]) -> bool:
    url = f"http://{probe['host']}:{probe['port']}{probe['path']}"
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _compared_parts(pod_status: dict[str, Any]) -> object:
    """Return the parts of a status that are compared: the phase, and the readiness and restarts of each container."""
    containers = [(c["ready"], c["restartCount"]) for c in pod_status.get("containerStatuses") or []]
    return pod_status.get("phase"), containers
