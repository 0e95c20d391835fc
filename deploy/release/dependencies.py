"""Gives the wheel the dependencies that requirements.in names; hatchling calls it."""

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class RequirementsHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        lines = map(str.strip, (Path(self.root) / "requirements.in").read_text().splitlines())
        metadata["dependencies"] = [line for line in lines if line and not line.startswith(("#", "-"))]
