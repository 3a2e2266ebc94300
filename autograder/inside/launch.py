"""First program inside the sandbox: set limits, unpack the submission, become the kernel, or run a CUDA kernel."""

import importlib
import json
import os
import resource
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def main() -> None:
    """Read the settings from the descriptor named in argv[1] and start the kernel."""
    with os.fdopen(int(sys.argv[1])) as source:
        settings = json.load(source)
    for name, value in settings["limits"].items():
        resource.setrlimit(getattr(resource, name), (value, value))
    for folder in (settings["work"], settings["temporary"]):
        Path(folder).mkdir(parents=True, exist_ok=True)
    unpack(settings["files"], Path(settings["work"]))
    os.chdir(settings["work"])
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    own_package = Path(__file__).resolve().parent.name
    if settings["reply"] >= 0:
        importlib.import_module(f"{own_package}.native").answer(Path(settings["work"]), settings["reply"])
    else:
        start_kernel(settings, own_package)


def unpack(descriptor: int, work: Path) -> None:
    """Write the plain files of an archive below a folder; the judge packed it and looked at every name."""
    with os.fdopen(descriptor, "rb") as packed, tarfile.open(fileobj=packed) as archive:
        for entry in archive:
            content = archive.extractfile(entry)
            if content is not None:
                target = work / entry.name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())


def start_kernel(settings: dict[str, Any], own_package: str) -> None:
    """Start ipykernel on the listening sockets that the judge opened for it."""
    application = kernel_application(settings)
    application.config.InteractiveShellApp.ignore_cwd = True
    application.config.IPKernelApp.ignore_cwd = True
    application.config.HistoryManager.hist_file = ":memory:"
    connection = Path(settings["temporary"]) / "kernel.json"
    connection.write_text(json.dumps(settings["connection"]))
    application.initialize(["-f", str(connection)])
    importlib.import_module(f"{own_package}.port").attach(application.kernel, settings["sockets"]["lent"])
    limit_output(application, settings["output_bytes"])
    sys.path.append(settings["work"])  # last, so that a student's random.py or numpy.py shadows nothing
    quiet = os.open(os.devnull, os.O_WRONLY)
    streams: tuple[Any, ...] = (sys.stdout, sys.stderr)
    for stream in streams:  # from here on the judge's pipe is out of reach
        os.dup2(quiet, stream._original_stdstream_copy)
    application.start()


def kernel_application(settings: dict[str, Any]) -> Any:
    """Return ipykernel's application, changed to use inherited sockets and nothing else."""
    import zmq
    from ipykernel.kernelapp import IPKernelApp

    class InheritedSocketsApp(IPKernelApp):  # type: ignore[misc]
        def _try_bind_socket(self, s: Any, port: int) -> int:
            s.setsockopt(zmq.USE_FD, settings["sockets"][str(port)])
            s.bind(f"ipc://{settings['temporary']}/kernel-{port}")
            return port

        def init_control(self, context: Any) -> None:
            """Leave the debugger's socket unconnected: it would retry a path that is not here."""
            super().init_control(context)
            self.debug_shell_socket.disconnect(self.shell_socket.getsockopt(zmq.LAST_ENDPOINT))

        def init_heartbeat(self) -> None:
            self.heartbeat = None

    return InheritedSocketsApp.instance()


def limit_output(application: Any, max_bytes: int) -> None:
    """Drop what a cell prints beyond the limit, so that printing threads do not starve it.

    The judge cuts outputs itself; this only saves the kernel from work that nobody will see.
    """
    written = {"bytes": 0}
    execute = application.kernel.shell_handlers["execute_request"]

    def _count_anew(*arguments: Any) -> Any:
        written["bytes"] = 0
        return execute(*arguments)

    def _bounded(write: Callable[[str], Any]) -> Callable[[str], Any]:
        def _write_bounded(text: str) -> Any:
            room = max(0, 2 * max_bytes - written["bytes"])
            written["bytes"] += len(text)
            if room:
                write(text[:room])
            return len(text)

        return _write_bounded

    application.kernel.shell_handlers["execute_request"] = _count_anew
    for stream in (sys.stdout, sys.stderr):
        stream.write = _bounded(stream.write)  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
