"""The circumstances under which the same output is asked for: what each changes, and how blocks are then read."""
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import harness

REFUSE_IO_URING = str(harness.BUILD / "refuse_io_uring")
BAD_DISK = str(harness.BUILD / "libbad_disk.so")


def best_method():
    """The words of the way of reading that this machine allows this user, found without the plug-in's help."""
    try:
        os.close(os.open(harness.MODEL, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        return ["pread", "buffered"]
    io_uring_setup, parameters_bytes = 425, 120  # on every architecture
    ring = ctypes.CDLL(None).syscall(io_uring_setup, 1, ctypes.create_string_buffer(parameters_bytes))
    if ring < 0:
        return ["pread", "direct"]
    os.close(ring)
    return ["io_uring", "direct"]


BEST = best_method()

# name: (launcher, environment, words of the method that must then be named)
CONDITIONS = {
    "plain": ([], {}, BEST),
    "unprivileged": ([], {}, BEST),
    "io_uring_eperm": ([REFUSE_IO_URING, "EPERM"], {}, ["pread", BEST[1]]),
    "io_uring_enosys": ([REFUSE_IO_URING, "ENOSYS"], {}, ["pread", BEST[1]]),
    "direct_open_refused": ([], {"LD_PRELOAD": BAD_DISK, "BAD_DISK": "open"}, ["pread", "buffered"]),
    "direct_read_refused": ([], {"LD_PRELOAD": BAD_DISK, "BAD_DISK": "read"}, ["pread", "buffered"]),
    "tmpfs": ([], {}, []),
}


def run_unprivileged():
    """Runs this program again as nobody, from a copy of everything it needs in a folder that nobody may read."""
    folder = tempfile.mkdtemp(prefix="rowtide-nobody-")
    try:
        os.chmod(folder, 0o755)
        tests = pathlib.Path(__file__).parent
        for source, name in [(harness.SOURCE / "models", "models"), (harness.LLAMA_BIN, "bin"), (tests, "e2e")]:
            shutil.copytree(source, f"{folder}/{name}", ignore=shutil.ignore_patterns("*.py[co]"))
        for program in ["rowtide", "refuse_io_uring", "libbad_disk.so", harness.PLUGIN.name]:
            shutil.copy2(harness.BUILD / program, f"{folder}/bin")  # beside the libraries, which it looks for there
        scratch = pathlib.Path(folder, "tmp")
        scratch.mkdir()
        scratch.chmod(0o1777)
        environment = {**os.environ, "TMPDIR": str(scratch), "ROWTIDE_SOURCE": folder, "ROWTIDE_BUILD": f"{folder}/bin",
                       "ROWTIDE_LLAMA_BIN": f"{folder}/bin", "ROWTIDE_PLUGIN": f"{folder}/bin/{harness.PLUGIN.name}"}
        python = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")  # one that does not lie in root's home
        command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", python, "-B",
                   f"{folder}/e2e/{pathlib.Path(sys.argv[0]).name}", *sys.argv[1:]]
        raise SystemExit(subprocess.run(command, cwd=folder, env=environment).returncode)
    finally:
        shutil.rmtree(folder)


def on_tmpfs(model):
    """Copies the model to memory."""
    folder = tempfile.mkdtemp(prefix="rowtide-e2e-", dir="/dev/shm")
    shutil.copy2(model, folder)
    return pathlib.Path(folder, model.name)
