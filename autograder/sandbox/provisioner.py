"""What a Jupyter client sees of a room: a kernel provisioner."""

import signal
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.provisioning import LocalProvisioner
from traitlets import Bool, Instance, Unicode

from autograder.limits import Limits
from autograder.sandbox.room import Room

CHANNELS = ("shell", "iopub", "stdin", "control")
LENT = "lent"  # no channel of Jupyter's: here the judge connects for each call that lends something


class BubblewrapProvisioner(LocalProvisioner):  # type: ignore[misc]
    """Start the kernel of a Jupyter client inside the sandbox.

    `start_kernel(submission={"name": b"bytes"})` puts these files into its working folder.
    """

    walls = Bool(True, help="False: no sandbox at all, for one's own notebook only")
    limits = Instance(Limits, args=(), help="what the sandbox may use")
    prefix = Unicode(help="the Python environment that the sandbox shows")
    room: Room | None = None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Open the sockets on UNIX paths in the room's folder."""
        self.room = Room(Path(self.prefix), self.limits, self.walls)
        self.submission = kwargs.pop("submission", {})
        self.parent.transport, self.parent.ip = "ipc", f"{self.room.folder}/k"
        self.parent.connection_file = f"{self.room.folder}/connection.json"
        kwargs = await super().pre_launch(**kwargs)
        for channel in CHANNELS:
            port = getattr(self.parent, f"{channel}_port")
            self.room.listen(str(port), f"{self.room.folder}/k-{port}")
        self.room.listen(LENT, f"{self.room.folder}/{LENT}")
        return kwargs

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> dict[str, Any]:
        """Start the room; the kernelspec's own command is not used."""
        assert self.room is not None
        info = dict(self.connection_info)
        info["key"] = info["key"].decode()
        self.process = self.room.start(info, self.submission)
        self.pid, self.pgid = self.process.pid, None
        found: dict[str, Any] = self.connection_info
        return found

    async def send_signal(self, signum: int) -> None:
        """End the whole sandbox for a killing signal; an interrupt goes by message instead."""
        if self.room and signum in (signal.SIGKILL, signal.SIGTERM):
            self.room.kill()

    async def cleanup(self, restart: bool = False) -> None:
        """Leave nothing behind."""
        if self.room:
            self.room.remove()
        await super().cleanup(restart)


def kernel_spec(prefix: Path, limits: Limits, sandbox: str = "bubblewrap") -> KernelSpec:
    """Return the kernelspec for a kernel in "bubblewrap" or in no ("none") sandbox."""
    config = {"limits": limits, "prefix": str(prefix), "walls": sandbox == "bubblewrap"}
    stanza = {"provisioner_name": "autograder-bubblewrap", "config": config}
    return KernelSpec(
        argv=[f"{prefix}/bin/python", "-f", "{connection_file}"],
        display_name="Python (sandbox)",
        language="python",
        interrupt_mode="message",
        metadata={"kernel_provisioner": stanza},
    )
