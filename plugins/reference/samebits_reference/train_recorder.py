"""Records one training step: forward, loss and backward, as the autograd engine runs it, ending in gradients."""

from __future__ import annotations

import torch

from samebits_reference.beside import Generators
from samebits_reference.families import Built
from samebits_reference.observe import source_line
from samebits_reference.recorder import Named, Recorder, Taken
from samebits_reference.training import TrainStep
from samebits_wire import recording_pb2 as pb

BACKWARD = "backward"  # the module of what no module's autograd node ran


def record(step: TrainStep, images: torch.Tensor, targets: torch.Tensor, named: Named) -> Taken:
    """Record one step of a family that has run before. It writes gradients and, as training does, buffers."""
    recorder = _TrainRecorder(step.built)
    recorder.name_storage(images, pb.ROLE_INPUT, "images")
    recorder.name_storage(targets, pb.ROLE_INPUT, "targets")
    step.clear()
    with Generators(step.built.device) as generators, recorder:
        with recorder.modules.watch():
            loss = step.forward(images, targets)
        recorder.in_backward = True
        step.backward(loss)
    recorder.note_generators(generators.problems)
    outputs = [("loss", loss.detach()), *step.gradients()]
    return recorder.finish([("images", images), ("targets", targets)], outputs, "train", named)


class _TrainRecorder(Recorder):
    """Knows of backward operations which forward call they belong to.

    Autograd numbers its nodes as forward makes them, each before its operation runs. So the first operation that is seen
    after a node was made is the one it differentiates.
    """

    frozen = frozenset((pb.ROLE_CONSTANT,))
    inputs_stay = False

    def __init__(self, built: Built) -> None:
        super().__init__(built)
        self.in_backward = False
        self._nodes: dict[int, tuple[str, str]] = {}  # where a node was made, by its number
        self._parameters = {id(tensor): name for name, tensor in built.module.named_parameters()}

    def where(self) -> tuple[str, str]:
        """Give module and line of a forward call, and of a backward one those of the call it belongs to."""
        if not self.in_backward:
            here = super().where()
            self._nodes.setdefault(torch._C._autograd._get_sequence_nr() - 1, here)
            return here
        node = torch._C._current_autograd_node()
        if node is None:
            return BACKWARD, source_line()
        owner = self._parameters.get(id(getattr(node, "variable", None)))
        if owner is not None:  # the node that hands a parameter its gradient
            return owner.rpartition(".")[0], ""
        return self._nodes.get(node._sequence_nr(), (BACKWARD, ""))

    def output_role(self, name: str) -> pb.Role:
        """Give gradients their own role."""
        return pb.ROLE_GRADIENT if name.startswith("grad.") else pb.ROLE_OUTPUT
