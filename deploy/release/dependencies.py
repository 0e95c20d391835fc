"""Gives the wheel the dependencies that requirements.in names; hatchling calls it."""

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def dependencies(root: Path) -> list[str]:
    lines = (root / "requirements.in").read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith(("#", "-"))]


class RequirementsHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        metadata["dependencies"] = dependencies(Path(self.root))
