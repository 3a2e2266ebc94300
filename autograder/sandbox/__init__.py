"""The sandbox: a kernel inside bubblewrap, with nothing of the host but read-only folders.

`view` says what is shown, `privileges` gives root away first, `groups` and `watchdog` hold the
limits that a process cannot hold itself to, `seccomp` refuses system calls, `room` puts them
together, and `provisioner` is what a Jupyter client sees.
"""

from autograder.sandbox.provisioner import BubblewrapProvisioner, kernel_spec
from autograder.sandbox.room import Room, sweep

__all__ = ["BubblewrapProvisioner", "Room", "kernel_spec", "sweep"]
