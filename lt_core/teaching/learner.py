"""The learner's own file: what was predicted, revealed, hinted and billed, one line of JSON each.

It stands beside the notebook, is readable by its owner alone and is sent nowhere. Lines are only ever added, so two
notebooks of one folder can write at once; deleting the file forgets everything and harms nothing.
"""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

from lt_core.base.records import JSON

FILE = ".lt_learner.jsonl"


class Learner:
    """What a learner has said and done so far, in a file: the notebook's folder has it unless another is named."""

    def __init__(self, path: str | Path = FILE) -> None:
        self.path = Path(path)

    @property
    def where(self) -> str:
        """The file in words: `.lt_learner.jsonl beside this notebook`."""
        return f"{FILE} beside this notebook" if self.path == Path(FILE) else str(self.path)

    def add(self, kind: str, **values: JSON) -> str:
        """Write one line; "" if it stands there, else why not, so that a full disk stops no lesson."""
        line = json.dumps({"kind": kind, **values}, ensure_ascii=False) + "\n"
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.fchmod(file, 0o600)  # it may be an older one that somebody opened to others
                os.write(file, line.encode())
            finally:
                os.close(file)
        except OSError as error:
            return f"not written down: {self.where}: {error.strerror or error}"
        return ""

    def records(self, kind: str) -> list[dict[str, JSON]]:
        """All lines of a kind, oldest first; a line that cannot be read is passed over with a warning."""
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            warnings.warn(f"{self.where} cannot be read: {error.strerror or error}", stacklevel=2)
            return []
        found = [self._record(number, line) for number, line in enumerate(lines, 1)]
        return [record for record in found if record.get("kind") == kind]

    def last(self, kind: str, name: str) -> dict[str, JSON]:
        """The newest line of a kind and a name; empty where there is none."""
        return next((r for r in reversed(self.records(kind)) if r.get("name") == name), {})

    def _record(self, number: int, line: str) -> dict[str, JSON]:
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if isinstance(record, dict):
            return record
        warnings.warn(f"line {number} of {self.where} cannot be read and is passed over", stacklevel=3)
        return {}
