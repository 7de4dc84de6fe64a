"""Log lines with levels that a host understands: one JSON object a line on standard error, as hclog writes them."""

from __future__ import annotations

import datetime
import json
import logging
import sys

_LEVELS = {
    logging.DEBUG: "debug",
    logging.INFO: "info",
    logging.WARNING: "warn",
    logging.ERROR: "error",
    logging.CRITICAL: "error",
}


class Formatter(logging.Formatter):
    """Writes hclog's JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Give one line."""
        moment = datetime.datetime.fromtimestamp(record.created, datetime.timezone.utc)
        entry = {
            "@level": _LEVELS.get(record.levelno, "info"),
            "@message": record.getMessage(),
            "@module": record.name,
            "@timestamp": moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def configure() -> None:
    """Send every logger's lines to the host."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Formatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
