"""What processes of many threads ask of the C library's allocator."""

import platform
import subprocess
import sys

import pytest

from compliance.serving.tuning import ARENAS

# Each thread allocates while all others live, so that each would get an arena of its own.
CROWD = """
import ctypes, re, sys, tempfile, threading
from compliance.serving.tuning import spare_memory
if sys.argv[1] == "spared":
    assert spare_memory()
if sys.argv[1] == "worker":
    import compliance.celery
    from celery.signals import worker_init
    worker_init.send(sender=None)
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
gathered = threading.Barrier(8)
def work():
    gathered.wait(); libc.malloc(5000); gathered.wait()
threads = [threading.Thread(target=work) for _ in range(8)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
libc.fopen.restype = ctypes.c_void_p
with tempfile.NamedTemporaryFile() as told:
    file = ctypes.c_void_p(libc.fopen(told.name.encode(), b"w"))
    libc.malloc_info(0, file); libc.fclose(file)
    print(len(re.findall(rb"<heap nr=", open(told.name, "rb").read())))
"""


def arenas(how: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", CROWD, how], capture_output=True, text=True, check=True, timeout=60
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has arenas to share")
def test_threads_of_a_serving_process_share_arenas() -> None:
    assert arenas("as it is") > ARENAS
    assert arenas("spared") <= ARENAS


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has arenas to share")
def test_threads_of_the_worker_share_arenas() -> None:
    assert arenas("worker") <= ARENAS
