"""A zygote of test arms, or a bad one."""

import os
import sys
import threading
import time

from arm import TestArm

from samebits_wire.serve import serve
from samebits_wire.zygote import fork_plugins


def prepare():
    match os.environ.get("ZYGOTE"):
        case "fails":
            raise ImportError("no torch here")
        case "threads":
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        case "dies":
            os._exit(3)
        case "sleeps":
            time.sleep(60)


def plugin():
    if os.environ.get("FORK") == "dies":
        os._exit(4)
    if os.environ.get("FORK") == "raises":
        raise RuntimeError("a mistake in the plugin")
    print("this fork has", sorted(os.listdir("/proc/self/fd")), file=sys.stderr)
    serve(TestArm)


fork_plugins(prepare, plugin)
