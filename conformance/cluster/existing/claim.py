"""A claim, which makes sure that only one run at a time uses an existing cluster: two operators would both act on every
set.

The claim is a Lease that a run renews while it is alive, by the rules of leader election (`kube.leases`). A run that
was killed loses the claim after 15 s, regardless of the clocks of the machines.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import aiohttp
import orjson

from conformance.cluster.progress import ProgressReporter, report_nothing
from conformance.errors import UsageError
from kube.client import Client
from kube.errors import ApiError
from kube.leases import Elector, LeadershipLost, LeaseTiming, Record
from kube.resource import LEASES

NAMESPACE, NAME = "kube-system", "grove-conformance"
TERMS = LeaseTiming()
AGENT = "grove-conformance/claim"


class ClusterClaim:
    """The claim of one run. `lost` says how the claim was lost; it is empty while this run has the claim."""

    def __init__(self, kubeconfig: Path, run: str, terms: LeaseTiming = TERMS) -> None:
        self.lost = ""
        self._kubeconfig, self._terms = kubeconfig, terms
        self._identity = f"{run} on {socket.gethostname()}"
        self._claimed, self._stopped = threading.Event(), threading.Event()
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._main, name="claim", daemon=True)

    def acquire(self, report: ProgressReporter = report_nothing) -> None:
        """Return once the cluster is claimed. Raises UsageError if another run uses the cluster."""
        self._thread.start()
        if not self._claimed.wait(2):
            report("cluster", f"waiting up to {self._terms.lease:g} s: the last run on it was killed, or is running")
        self._claimed.wait()
        if self._problem is not None:
            raise self._problem

    def release(self) -> None:
        """Release the claim. Idempotent."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout=self._terms.deadline)

    # -- in the thread -------------------------------------------------------------------------------------------

    def _main(self) -> None:
        try:
            asyncio.run(self._keep())
        except BaseException as error:
            self._problem = error
        finally:
            self._claimed.set()

    async def _keep(self) -> None:
        async with Client.from_kubeconfig(self._kubeconfig, user_agent=AGENT) as client:
            elector = Elector(client, NAMESPACE, NAME, identity=self._identity, terms=self._terms)
            await self._acquire(client, elector)
            self._claimed.set()
            hold_task = asyncio.create_task(self._hold(elector))
            await asyncio.to_thread(self._stopped.wait)
            hold_task.cancel()
            await _delete(client, self._identity)

    async def _hold(self, elector: Elector) -> None:
        while True:
            try:
                await elector.hold()
            except LeadershipLost as error:
                self.lost = str(error)
                await elector.acquire()  # succeeds at once if the API server was only silent too long
                self.lost = ""

    async def _acquire(self, client: Client, elector: Elector) -> None:
        """Acquire the Lease, waiting for a previous holder's to expire. Raises UsageError if another run still holds
        it."""
        patience = self._terms.lease + 2 * self._terms.retry
        try:
            async with asyncio.timeout(patience):
                await elector.acquire()
        except TimeoutError:
            holder = Record.of(orjson.loads(await client.get(LEASES, NAMESPACE, NAME))).holder
            raise UsageError(
                f"the run {holder} uses this cluster",
                where=f"lease {NAMESPACE}/{NAME}",
                hint="wait for its end, or take another cluster",
            ) from None


async def _delete(client: Client, identity: str) -> None:
    """Delete the Lease, unless it has another holder."""
    with suppress(ApiError, aiohttp.ClientError, TimeoutError):
        lease = orjson.loads(await client.get(LEASES, NAMESPACE, NAME))
        if Record.of(lease).holder == identity:
            await client.delete(LEASES, NAMESPACE, NAME, version=lease["metadata"]["resourceVersion"])


@contextmanager
def claim_cluster(kubeconfig: Path, run: str, report: ProgressReporter = report_nothing) -> Iterator[ClusterClaim]:
    """Claim a cluster while the context is active. Raises UsageError if another run uses the cluster."""
    claim = ClusterClaim(kubeconfig, run)
    try:
        claim.acquire(report)
        yield claim
    finally:
        claim.release()
