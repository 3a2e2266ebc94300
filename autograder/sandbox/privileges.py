"""Stop being root before bubblewrap starts.

As uid 0 the limit on processes does not count, and files that root owns stay readable. So a
grader that runs as root starts each sandbox under a uid of its own.
"""

import itertools
import os
import shlex
from pathlib import Path

# Above the ranges that distributions and container engines hand out.
FIRST_UID, UIDS, UIDS_PER_PROCESS = 2_000_000_000, 100_000_000, 1_000
_count = itertools.count()


def next_uid() -> int:
    """Return a uid that no other sandbox of this process uses now."""
    return FIRST_UID + (os.getpid() * UIDS_PER_PROCESS + next(_count) % UIDS_PER_PROCESS) % UIDS


def give_root_away(folders: list[str], stage: str, uid: int) -> list[str]:
    """Return the command prefix that makes folders reachable for others, then drops root.

    A private mount namespace, not a permission, opens folders below one like /root: others on
    the machine see no change. `stage` is an empty folder that the namespace may mount on.
    Nothing here forks: bubblewrap must stay our own child to die with us.
    """
    blocked = [folder for folder in folders if any(not _enterable(p) for p in Path(folder).parents)]
    tops = {next(str(p) for p in reversed(Path(folder).parents) if not _enterable(p)) for folder in blocked}
    lines = ["set -e"]
    for n, folder in enumerate(blocked):
        lines.append(f"mkdir {stage}/{n}")
        lines.append(f"mount --bind {shlex.quote(folder)} {stage}/{n}")
    lines += [f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(top)}" for top in sorted(tops)]
    for n, folder in enumerate(blocked):
        lines += [f"mkdir -p {shlex.quote(folder)}", f"mount --move {stage}/{n} {shlex.quote(folder)}"]
    script = "\n".join([*lines, 'exec "$@"'])
    return [
        *["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"],
        *["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--inh-caps=-all", "--no-new-privs"],
    ]


def _enterable(folder: Path) -> bool:
    return bool(folder.stat().st_mode & 0o001)
