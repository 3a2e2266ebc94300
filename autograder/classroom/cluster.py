"""Workers on Dask: processes of this machine by default, those of a running scheduler by address.

Always TLS: an open scheduler lets any local user run code as the grader. No dashboard. One thread in
each worker process, in which the sandboxes of a task are started and ended.
"""

import logging
import os
import queue
import tempfile
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice

import dask
from distributed import Client, Future, KilledWorker, LocalCluster
from distributed.gc import disable_gc_diagnosis
from distributed.security import Security

from autograder.classroom.payload import Payload, pack_task, unpack_graded
from autograder.classroom.plan import INFRASTRUCTURE
from autograder.classroom.worker import IgnoreInterrupts, grade_bytes
from autograder.errors import SandboxError, UsageError
from autograder.grading import Graded, not_graded
from autograder.lab import Lab

LOST_WORKERS_ALLOWED = 2
IN_FLIGHT = 64
CONNECT_SECONDS = 30
SETTINGS = {
    "distributed.scheduler.allowed-failures": LOST_WORKERS_ALLOWED,
    "distributed.scheduler.worker-saturation": 1.0,  # nothing waits on a worker that another submission may kill
    "distributed.admin.large-graph-warning-threshold": "1GB",  # a submission may be 64 MiB
    "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS}s",
    "distributed.scheduler.http.routes": [],  # the port is opened whatever one says: let it answer nothing
    "distributed.worker.http.routes": [],
}


@dataclass(frozen=True)
class Where:
    """Where to grade: on `workers` processes here (default: as many as cores), or by a `scheduler`."""

    workers: int | None = None
    scheduler: str | None = None


def run(lab: Lab, payloads: dict[str, Payload], where: Where) -> Iterator[Graded]:
    """Grade every payload; yield each result as it comes, in no particular order.

    Raises
    ------
    CourseError
        If a worker cannot grade this lab: it has another version of it.
    UsageError
        If the scheduler cannot be reached.
    SandboxError
        If the connection to it is lost.
    """
    with dask.config.set(SETTINGS), _client(where, len(payloads)) as client:
        waiting, done, open_futures = iter(payloads.items()), queue.SimpleQueue[Future](), {}

        def send(count: int) -> None:
            for student, payload in islice(waiting, count):
                future = client.submit(grade_bytes, pack_task(payload), pure=False)
                open_futures[future] = student
                future.add_done_callback(done.put)

        send(max(IN_FLIGHT, 2 * len(client.nthreads())))
        while open_futures:
            future = done.get()
            student = open_futures.pop(future)
            send(1)
            yield _result(lab, payloads[student], future)


def _result(lab: Lab, payload: Payload, future: Future) -> Graded:
    try:
        return unpack_graded(future.result())
    except KilledWorker:
        reason = f"{LOST_WORKERS_ALLOWED + 1} workers in turn were lost while they graded it; grade it again"
        return Graded(not_graded(lab, payload.student, payload.submission.digest, reason, INFRASTRUCTURE))
    except CancelledError:
        raise SandboxError(
            "scheduler: the connection was lost; what was finished is kept, grade the rest again"
        ) from None


@contextmanager
def _client(where: Where, tasks: int) -> Iterator[Client]:
    with ExitStack() as stack:
        if where.scheduler is not None:
            client = stack.enter_context(_connect(where.scheduler))
        else:
            scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="autograder-"))
            cluster = stack.enter_context(_local(min(where.workers or _cores(), tasks), scratch))
            client = stack.enter_context(Client(cluster))
            client.register_plugin(IgnoreInterrupts())
        disable_gc_diagnosis(force=True)  # a Ctrl-C that falls into its callback would be lost
        yield client


def _local(workers: int, scratch: str) -> LocalCluster:
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        security=Security.temporary(),
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        memory_limit=None,  # the sandbox bounds memory; a nanny that kills at 95 % of a guess would not know whose
        local_directory=scratch,
        silence_logs=logging.CRITICAL,
    )


def _connect(address: str) -> Client:
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is raised here, in our words
    try:
        return Client(address, security=Security(), timeout=CONNECT_SECONDS)
    except (OSError, TypeError, ValueError) as error:
        raise UsageError(
            f"--scheduler: expected a Dask scheduler at {address}, got {type(error).__name__}: {error}; "
            "certificates come from Dask's configuration, distributed.comm.tls"
        ) from None


def _cores() -> int:
    return len(os.sched_getaffinity(0))
