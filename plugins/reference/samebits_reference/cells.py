"""The table of cells: every family, size and task that LibreYOLO can predict with under its own CUDA graph flag.

`python -m samebits_reference.cells` prints it as JSON lines, without importing torch. docs/families.md explains it.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable

from samebits_reference.planted import table
from samebits_wire.problems import Problem, ProblemError

MATRIX, VARIANT, OWN_PATH, BEYOND, PLANTED = "matrix", "variant", "own-path", "beyond", "planted"
CUSTOM = "custom"  # a class that is not of LibreYOLO


@dataclasses.dataclass(frozen=True)
class Cell:
    """A family with one of its tasks, in the size and at the image size of the public parity list."""

    task: str
    family: str  # its variant, if it is one, stands behind an @
    classname: str
    size: str
    imgsz: int
    native: int  # the image size that this family, size and task were made for
    stride: int = 1  # image sizes are multiples of it
    only: int = 0  # the one image size it takes; 0: any multiple of stride
    construct: str = "standard"  # see builders.py
    group: str = MATRIX
    module: str = "model"  # below libreyolo.models.<package>; of group custom the whole path
    segment: str = ""  # the part of the family's forward that is the step; empty: all of it. See seams.py
    predicts: bool = False  # of group custom: the class has LibreYOLO's predict. See docs/families.md
    # What the graphs of this cell must stand beside: (family, image size), 0 for this one's. See docs/gates.md, SHAPE.
    others: tuple[tuple[str, int], ...] = ()

    @property
    def package(self) -> str:
        """Give LibreYOLO's name of the family."""
        return self.family.partition("@")[0]

    @property
    def variant(self) -> str:
        """Give what tells this cell from others of its family and task; empty for the usual one."""
        return self.family.partition("@")[2]

    @property
    def path(self) -> str:
        """Give the dotted path of the class, or of the function that makes a planted module."""
        if self.group == CUSTOM:
            return f"{self.module}.{self.classname}"
        if self.group == PLANTED:
            return f"samebits_reference.planted.{self.module}.{self.classname}"
        return f"libreyolo.models.{self.package}.{self.module}.{self.classname}"


CELLS: tuple[Cell, ...] = (
    Cell("detect", "yolo1", "LibreYOLO1", "t", 448, 448, only=448),
    Cell("detect", "yolo2", "LibreYOLO2", "t", 640, 416, 32),
    Cell("detect", "yolo3", "LibreYOLO3", "t", 640, 416, 32),
    Cell("detect", "yolo4", "LibreYOLO4", "t", 640, 416, 32),
    Cell("detect", "yolo7", "LibreYOLO7", "b", 640, 640, 32),
    Cell("detect", "yolo9", "LibreYOLO9", "t", 640, 640, 32),
    Cell("detect", "yolo9_p2", "LibreYOLO9P2", "t", 640, 640, 32),
    Cell("detect", "yolo9_e2e", "LibreYOLO9E2E", "t", 640, 640, 32),
    Cell("detect", "yolox", "LibreYOLOX", "n", 640, 416, 32),
    Cell("detect", "yolonas", "LibreYOLONAS", "s", 640, 640, 32),
    Cell("detect", "picodet", "LibrePICODET", "s", 640, 320, 32),
    Cell("detect", "rtmdet", "LibreRTMDet", "t", 640, 640, 32),
    Cell("detect", "dfine", "LibreDFINE", "n", 640, 640, 32),
    Cell("detect", "deim", "LibreDEIM", "n", 640, 640, 32),
    Cell("detect", "deimv2", "LibreDEIMv2", "atto", 640, 320, 32),
    Cell("detect", "rtdetr", "LibreRTDETR", "r18", 640, 640, 32, construct="scratch"),
    Cell("detect", "rtdetrv2", "LibreRTDETRv2", "r18", 640, 640, 32),
    Cell("detect", "rtdetrv4", "LibreRTDETRv4", "s", 640, 640, 32),
    Cell("detect", "rfdetr", "LibreRFDETR", "n", 640, 384, 32, construct="empty-state"),
    Cell("detect", "ec", "LibreEC", "s", 640, 640, 32),
    Cell("segment", "dfine", "LibreDFINE", "n", 640, 640, 32),
    Cell("segment", "rtmdet", "LibreRTMDet", "t", 640, 640, 32),
    Cell("segment", "rfdetr", "LibreRFDETR", "n", 636, 312, 12, construct="empty-state"),
    Cell("segment", "ec", "LibreEC", "s", 640, 640, 32),
    Cell("pose", "ec", "LibreEC", "s", 640, 640, 32),
    Cell("pose", "yolonas", "LibreYOLONAS", "s", 640, 640, 32),
    Cell("pose", "rfdetr", "LibreRFDETR", "x", 648, 576, 24),
    Cell("point", "fomo", "LibreFOMO", "s", 640, 96, 8),
    Cell("classify", "resnet", "LibreResNet", "18", 640, 224),
    Cell("classify", "convnext", "LibreConvNeXt", "t", 640, 224),
    Cell("classify", "mobilenetv4", "LibreMobileNetV4", "s", 640, 224),
    Cell("classify", "efficientnetv2", "LibreEfficientNetV2", "b0", 640, 224),
    Cell("classify", "clip", "LibreCLIP", "b32", 224, 224, only=224, construct="own-state"),
    Cell("classify", "siglip2", "LibreSigLIP2", "b16", 256, 256, only=256, construct="own-state"),
    Cell("classify", "dinov2", "LibreDINOv2", "n", 644, 224, 14),
    Cell("semantic", "dinov2", "LibreDINOv2", "n", 644, 518, 14),
    Cell("semantic", "eomt", "LibreEoMT", "s", 512, 512, only=512),
    Cell("semantic", "segformer", "LibreSegformer", "b0", 640, 512, 32),
    Cell("semantic", "pidnet", "LibrePIDNet", "s", 640, 1024, 64),
    Cell("semantic", "lingbotvision", "LibreLingBotVision", "s", 640, 512, 16),
    Cell("depth", "depth_anything", "LibreDepthAnythingV2", "s", 644, 518, 14),
    Cell("depth", "depth_anything3", "LibreDepthAnything3", "l", 644, 504, 14, segment="forward_network"),
    Cell("depth", "zipdepth", "LibreZipDepth", "b", 640, 384, 32),
    Cell("restore", "nafnet", "LibreNAFNet", "s", 640, 256, 16),
    Cell("restore", "realesrgan", "LibreRealESRGAN", "x4", 640, 64),
    Cell("restore", "swinir", "LibreSwinIR", "s", 640, 64, 8),
    Cell("matte", "birefnet", "LibreBiRefNet", "t", 640, 1024, 32, segment="forward_enc"),
)


def _tower(family: str, other: str) -> Cell:
    return Cell(
        "embed", family, "SiglipVisionModel", "b", 14, 14, only=14, construct="tower", group=OWN_PATH,
        module="modeling.siglip_navit", segment="vit_model", others=((other, 0),),
    )  # fmt: skip


# Beside the list: a seam as upstream has it, families with a path of their own, and two that the recorder must refuse.
FURTHER: tuple[Cell, ...] = (
    Cell("matte", "birefnet@whole", "LibreBiRefNet", "t", 640, 1024, 32, group=VARIANT),
    Cell("ocr", "ppocr", "LibrePPOCR", "t", 640, 960, 32, group=OWN_PATH, segment="det", others=(("ppocr", 480),)),
    Cell("embed", "sam", "LibreSAM1", "base", 1024, 1024, construct="sam", group=OWN_PATH, segment="get_image_embeddings"),
    # Packings of the same number of patches: one image of 16 by 16, one of 8 by 32, two of 8 by 16.
    _tower("sensenova", other="sensenova@wide"),
    _tower("sensenova@wide", other="sensenova@two"),
    _tower("sensenova@two", other="sensenova"),
    Cell("gaze", "l2cs", "LibreL2CS", "r18", 448, 448, construct="faces", group=BEYOND),
    Cell("detect", "domedetr", "LibreDOMEDETR", "s", 800, 800, only=800, group=BEYOND),
)


def _planted(module: str, function: str) -> tuple[Cell, Cell]:
    def cell(family: str) -> Cell:
        others = ((family, table.OTHER_SIZES[function]),) if function in table.OTHER_SIZES else ()
        return Cell(
            table.TASK, family, function, "s", 32, 32, 8, construct="planted", group=PLANTED, module=module, others=others
        )

    return cell(table.family(function)), cell(f"{table.family(function)}@{table.TWIN}")


# Faults to try the suite on, each beside a twin without it: see docs/selftest.md.
FAULTS: tuple[Cell, ...] = tuple(
    cell for module, functions in table.FUNCTIONS.items() for function in functions for cell in _planted(module, function)
)
ALL = CELLS + FURTHER + FAULTS


def find(family: str, task: str) -> Cell:
    """Give the cell of a family; the empty task is the family's first one."""
    tasks = [cell for cell in ALL if cell.family == family]
    if not tasks:
        known = ", ".join(sorted({cell.family for cell in CELLS + FURTHER}))
        raise ProblemError(Problem("UNKNOWN_FAMILY", f"no family is named {family!r}", "family", f"known: {known}"))
    for cell in tasks:
        if task in ("", cell.task):
            return cell
    known = ", ".join(cell.task for cell in tasks)
    raise ProblemError(Problem("UNKNOWN_TASK", f"{family} has no task {task!r}", "task", f"its tasks: {known}"))


def unpredictable(cell: Cell) -> str:
    """Say why a cell does not predict pictures by one step on images; nothing if it does."""
    if cell.task == "embed":
        return "it takes prompts or packed patches, not pictures alone"
    if cell.group == BEYOND:
        return "no step of it can be taken out"
    if cell.group == PLANTED or (cell.group == CUSTOM and not cell.predicts):
        return "it is no family of LibreYOLO, and its row of the table does not say that it predicts as one does"
    return ""


def check_shape(cell: Cell, imgsz: int, batch: int) -> list[Problem]:
    """Give what is wrong with an image size and a batch."""
    problems = []
    if cell.only and imgsz != cell.only:
        problems.append(Problem("BAD_IMAGE_SIZE", f"{cell.family} takes images of {cell.only} only, not {imgsz}", "imgsz"))
    elif imgsz < cell.stride or imgsz % cell.stride or imgsz > MAX_IMGSZ:
        takes = f"sizes of 1 to {MAX_IMGSZ}" if cell.stride == 1 else f"multiples of {cell.stride} up to {MAX_IMGSZ}"
        what = f"{cell.family} takes {takes}, not {imgsz}"
        problems.append(Problem("BAD_IMAGE_SIZE", what, "imgsz"))
    if not 1 <= batch <= MAX_BATCH:
        problems.append(Problem("BAD_BATCH", f"a batch has 1 to {MAX_BATCH} images, not {batch}", "batch"))
    return problems


MAX_IMGSZ = 8192
MAX_BATCH = 1024


def json_lines(cells: Iterable[Cell] = ALL) -> str:
    """Give cells as JSON, one a line."""
    return "\n".join(
        json.dumps(dataclasses.asdict(cell) | {"path": cell.path, "unpredictable": unpredictable(cell)}, sort_keys=True)
        for cell in cells
    )


if __name__ == "__main__":
    sys.stdout.write(json_lines() + "\n")
