"""What a restore needs: Barman's backups, and copies of tokens and settings."""

import secrets
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ops.tests.restoring.barman import Barman, find_barman
from ops.tests.restoring.site import Site

TOKENS = ("tokens", "made")


@dataclass(frozen=True)
class Backups:
    """The backups of one site, on a machine that outlives it."""

    folder: Path
    barman: Barman

    @classmethod
    def of(cls, site: Site, folder: Path) -> "Backups":
        """Begin to back up a site that runs. Raises StepFailed if a program is missing."""
        barman = Barman(find_barman(site), folder / "barman", secrets.token_hex(16))
        folder.mkdir(mode=0o700, parents=True)
        barman.adopt(site)
        return cls(folder, barman)

    def keep_files(self, site: Site) -> None:
        """Copy tokens and settings, over the copies from before."""
        for name in TOKENS:
            source, target = site.tokens.folder / name, self.folder / "softhsm" / name
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            else:
                shutil.copy2(source, target)
        shutil.copy2(site.settings, self.folder / site.settings.name)

    def restore(self, site: Site, *, moment: datetime | None = None, jobs: int = 1) -> None:
        """Fill an empty site from the backups, up to a moment if one is given; nothing is started."""
        site.folder.mkdir(mode=0o711, parents=True)
        shutil.copy2(self.folder / site.settings.name, site.settings)
        site.prepare()
        shutil.copytree(self.folder / "softhsm", site.tokens.folder)
        site.tokens.ensure()
        self.barman.restore(site.postgres.data, moment=moment, jobs=jobs)
