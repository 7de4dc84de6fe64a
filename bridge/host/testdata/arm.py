"""The test arm of this folder's Go tests, in Python: it adds one to every byte and misbehaves as told."""

import logging
import os
import signal
import sys
import time

from samebits_wire import arm_pb2 as wire
from samebits_wire import recording_pb2
from samebits_wire.arm import Arm
from samebits_wire.problems import Problem, ProblemError
from samebits_wire.serve import serve

SPEC = wire.TensorSpec(name="images", dtype=recording_pb2.DTYPE_UINT8, sizes=[2, 50])


class TestArm(Arm):
    def __init__(self):
        if "BROKEN" in os.environ:
            raise RuntimeError("no torch here")
        self.deeds = {}
        self.steps = 0

    def describe(self):
        return wire.DescribeReply(plugin="python-test", version="3", arms=["reference-eager"], devices=["cpu"])

    def load(self, request, memory):
        self.deeds = {option.key: option.value for option in request.options}
        self.do("load")
        digest = bytes(memory.view(request.weights)).decode()
        return wire.LoadReply(inputs=[SPEC], outputs=[SPEC], recording_digest=digest)

    def prepare(self, request, memory):
        self.inputs = [memory.view(bank.tensors[0].region) for bank in request.inputs]
        self.outputs = [memory.view(bank.tensors[0].region) for bank in request.outputs]
        return wire.PrepareReply(captured=request.cuda_graph, nodes=7)

    def step(self, input_bank, output_bank):
        self.do("step")
        self.outputs[output_bank][:] = bytes((byte + 1) % 256 for byte in self.inputs[input_bank])
        self.steps += 1

    def disturb(self, request):
        self.do("disturb")

    def stats(self):
        return wire.StatsReply(eager_steps=self.steps)

    def do(self, call):
        match self.deeds.get(call):
            case "error":
                raise KeyError("something broke")
            case "problems":
                raise ProblemError([Problem("UNKNOWN_OPERATION", "no such", f"operations[{i}]") for i in range(5000)])
            case "out-of-memory":
                raise MemoryError("3 bytes were wanted")
            case "exit":
                print("last words")
                sys.stderr.flush()
                os._exit(5)
            case "segfault":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "hang":
                while True:  # the worst kind: it holds the interpreter
                    pass
            case "sleep":
                time.sleep(3600)
            case "slow":
                time.sleep(0.3)
            case "talk":
                print("printed")
                os.system("echo from a child; echo from its standard error >&2")
                logging.getLogger("x").warning("a %s line", "structured")


if __name__ == "__main__":
    serve(TestArm)
