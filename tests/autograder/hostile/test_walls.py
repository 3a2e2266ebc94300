"""Nothing of the host can be read, written or reached from inside."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.sandbox

LOOK = """
import json, os, importlib.util
from pathlib import Path
asked = json.loads({asked!r})
def readable(path):
    try:
        return bool(os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1))
    except OSError:
        return False
names = set(asked["names"])
found = []
for folder, folders, files in os.walk("/") if names else ():
    folders[:] = [n for n in folders if os.path.join(folder, n) not in ("/proc", "/sys", "/dev")]
    found += [os.path.join(folder, n) for n in (*folders, *files) if n in names]
print(json.dumps({{
    "readable": [p for p in asked["paths"] if readable(p)],
    "found": found,
    "imports": [n for n in asked["imports"] if importlib.util.find_spec(n)],
    "variables": dict(os.environ),
    "first": Path("/proc/1/environ").read_text(),
    "processes": [p for p in os.listdir("/proc") if p.isdigit()],
    "descriptors": sorted(os.readlink(f"/proc/self/fd/{{n}}").split(":")[0] for n in os.listdir("/proc/self/fd")
                          if os.path.lexists(f"/proc/self/fd/{{n}}")),
    "root": sorted(os.listdir("/")),
    "home": sorted(os.listdir("/w")),
}}))
"""


def look(try_cells, **asked: list[str]) -> dict:
    request = {"paths": [], "names": [], "imports": []} | asked
    source = LOOK.format(asked=json.dumps(request))
    trial = try_cells(before=source, files={"data.csv": b"1,2\n"})
    assert trial.points("total") == 3, trial.text
    return json.loads(trial.printed(1))


def test_no_reference_check_gradebook_or_submission_is_visible(try_cells, project, tmp_path):
    private = tmp_path / "secret"
    private.write_text("x")
    paths = [project / "autograder", project / "solutions", project / "course", project / "tests", private]
    paths += [
        Path(__file__),
        Path.home() / ".ssh",
        Path("/etc/passwd"),
        Path("/etc/shadow"),
        Path("/home"),
        Path("/var"),
    ]
    seen = look(
        try_cells,
        paths=[str(path) for path in paths],
        names=["fp4kv", "gradebook.db", "lab02_formats.py", "nbgrader", "ml_dtypes", "outcome.json", ".git"],
        imports=["fp4kv", "autograder", "nbgrader", "ml_dtypes", "torch", "torchao", "solutions", "pytest"],
    )
    assert seen["readable"] == seen["found"] == seen["imports"] == []
    assert seen["home"] == ["data.csv"]


def test_environment_says_nothing_of_the_grader(try_cells, monkeypatch):
    monkeypatch.setenv("GRADER_PASSWORD", "open sesame")
    seen = look(try_cells)
    assert "sesame" not in json.dumps(seen)
    assert seen["first"].startswith("PATH=/usr/sbin:/usr/bin:/sbin:/bin\0")
    assert set(seen["variables"]) >= {"HOME", "PATH"}
    assert not {name for name in seen["variables"] if "AUTOGRADER" in name or "GRADER" in name}


def test_own_processes_are_the_only_ones(try_cells):
    assert len(look(try_cells)["processes"]) <= 3


def test_no_descriptor_leads_to_the_host(try_cells):
    kinds = set(look(try_cells)["descriptors"])
    assert kinds <= {"/dev/null", "anon_inode", "pipe", "socket", "/proc/1/fd", "/dev/urandom"} | {
        kind for kind in kinds if kind.startswith("/proc/")
    }, kinds


FORBIDDEN_CALLS = {
    "memory of process 1": "open('/proc/1/mem', 'r+b')",
    "write to /proc": "open('/proc/self/oom_score_adj', 'w').write('0')",
    "write to /usr": "open('/usr/lib/x', 'w')",
    "write to /": "open('/x', 'w')",
    "write to the environment": "open(np.__file__, 'a')",
    "write to our code": "open('/judge/autograder_inside/port.py', 'a')",
    "change the owner": "os.chown('/w', 0, 0)",
    "become root": "os.setuid(0)",
    "mount": "raised(libc.mount(b'none', b'/tmp', b'tmpfs', 0, None))",
    "new namespace": "raised(libc.unshare(0x10000000))",
    "ptrace": "raised(libc.ptrace(16, 1, 0, 0))",
    "memfd": "os.memfd_create('x')",
    "key ring": "raised(libc.syscall(250, 0, 0))",
    "raw socket": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "kill the host": "os.kill(PARENT, 9)",
    "internet": "socket.create_connection(('192.0.2.1', 80), 1)",
    "name service": "socket.getaddrinfo('example.org', 80)",
    "local services": "socket.create_connection(('127.0.0.1', PORT), 1)",
    "abstract socket": "socket.socket(socket.AF_UNIX).connect('\\0autograder-test')",
    "device": "open('/dev/sda', 'rb')",
    "kernel log": "open('/dev/kmsg')",
    "raise a limit": "resource.setrlimit(resource.RLIMIT_NPROC, (10**6, 10**6))",
}
TRY = """
import ctypes, os, resource, socket
libc = ctypes.CDLL(None, use_errno=True)
def raised(result):
    if result < 0: raise OSError(ctypes.get_errno(), "refused")
try:
    CALL
    print("it worked")
except (OSError, ValueError) as error:
    print("refused", type(error).__name__)
"""


@pytest.fixture
def listening():
    """Services of the host that a sandbox must not reach: a port and an abstract socket."""
    import socket

    with socket.socket() as port, socket.socket(socket.AF_UNIX) as abstract:
        port.bind(("127.0.0.1", 0))
        port.listen()
        abstract.bind("\0autograder-test")
        abstract.listen()
        yield str(port.getsockname()[1])


def test_forbidden_calls_are_refused(try_cells, listening):
    """All in one notebook: each tries, and says how it ended."""
    import os

    source = "".join(
        f"print({name!r}, end=': ')\n" + TRY.replace("CALL", call) for name, call in FORBIDDEN_CALLS.items()
    )
    trial = try_cells(before=source.replace("PARENT", str(os.getpid())).replace("PORT", listening))
    assert (trial.points("double"), trial.points("total")) == (3, 3), trial.text
    answers = dict(line.split(": ", 1) for line in trial.printed(1).splitlines())
    assert set(answers) == set(FORBIDDEN_CALLS)
    assert not {name for name, answer in answers.items() if not answer.startswith("refused")}, answers


def test_what_is_written_inside_stays_inside(try_cells, project, tmp_path):
    target = tmp_path / "lab.ipynb"
    target.write_text("as submitted")
    paths = [str(target), str(project / "course/gradebook.db"), str(project / "course/submitted/x"), "/w/mine"]
    source = f"""
import os
for path in {paths}:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "w").write("changed")
        print("wrote", path)
    except OSError as error:
        print(error)
"""
    existed = (project / "course/gradebook.db").exists()
    trial = try_cells(before=source)
    assert trial.points("total") == 3
    assert "wrote /w/mine" in trial.printed(1)
    assert target.read_text() == "as submitted"
    assert (project / "course/gradebook.db").exists() == existed
    assert not (project / "course/submitted/x").exists()


def test_module_beside_the_notebook_shadows_nothing(try_cells):
    fake = b"raise SystemExit('this is not NumPy')"
    files = {"numpy.py": fake, "random.py": fake, "json.py": fake, "labkit/__init__.py": fake, "sitecustomize.py": fake}
    trial = try_cells("import random, json, labkit\ndef double(x):\n    return 2 * x\n", files=files)
    assert (trial.points("double"), trial.points("total")) == (3, 3), trial.text


def test_next_kernel_knows_nothing_of_the_last(try_cells):
    source = "import os\nprint(sorted(os.listdir('/tmp')), sorted(os.listdir('/w')))\nopen('/tmp/left', 'w')\n"
    trial = try_cells(
        before=source, between="import os\nos._exit(0)", after="import os\nprint(os.path.exists('/tmp/left'))"
    )
    assert "left" not in trial.printed(1)
    assert trial.points("double") + trial.points("total") == 6
