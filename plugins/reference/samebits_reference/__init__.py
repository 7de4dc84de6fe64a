"""The reference plugin: builds families, records what eager PyTorch runs, and is the arm that the others must equal."""

__version__ = "0.1.0"
