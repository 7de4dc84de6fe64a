from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

# Each script runs in a fresh interpreter: pytest's own would be forked with all its threads.
USED_BEFORE = """
import gc, json, os, sys, numpy as np, samebits
model = samebits.load(os.environ["DATA"] + "/tiny")
images = np.zeros((1, 3, 8, 8), np.float32)
view = model.predict(images, copy=False)
read, write = os.pipe()
child = os.fork()
if child == 0:
    found = []
    for call in (lambda: model.predict(images), lambda: samebits.load(os.environ["DATA"] + "/tiny"), samebits.devices,
                 model.capture_graph, model.input_buffers):
        try:
            call()
            found.append("no error")
        except samebits.ForkedError as error:
            found.append(error.code)
    model.close()  # does nothing, and does not hang
    del view
    gc.collect()
    os.write(write, json.dumps(found).encode())
    sys.exit()
os.close(write)
said = os.read(read, 10000).decode()
_, status = os.waitpid(child, 0)
again = model.predict(images)["features"].shape  # the parent goes on
model.close()
print(json.dumps([json.loads(said), os.waitstatus_to_exitcode(status), again]))
"""

USED_AFTER = """
import os, numpy as np, samebits
child = os.fork()
with samebits.load(os.environ["DATA"] + "/tiny") as model:
    shape = model.predict(np.zeros((1, 3, 8, 8), np.float32))["features"].shape
if child == 0:
    os._exit(0 if shape == (1, 4, 8, 8) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), shape)
"""

SPAWNED = """
import multiprocessing, os
import numpy as np, samebits

def work(folder):
    with samebits.load(folder) as model:
        return model.predict(np.zeros((1, 3, 8, 8), np.float32))["features"].shape

if __name__ == "__main__":
    folder = os.environ["DATA"] + "/tiny"
    work(folder)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(work, [folder] * 4))
"""


def test_calls_in_a_forked_child(python: Callable[..., Any]) -> None:
    done = python(USED_BEFORE, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [["FORKED"] * 5, 0, [1, 4, 8, 8]], done.stderr


def test_first_use_after_a_fork(python: Callable[..., Any]) -> None:
    """Importing starts nothing, so parent and child may both use it afterwards."""
    done = python(USED_AFTER, timeout=60)
    assert done.stdout.split() == ["0", "(1,", "4,", "8,", "8)"], done.stderr


def test_spawned_processes(python: Callable[..., Any], tmp_path: Any) -> None:
    script = tmp_path / "spawned.py"
    script.write_text(SPAWNED)
    done = python(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')", timeout=120)
    assert done.stdout.count("(1, 4, 8, 8)") == 4, done.stderr
