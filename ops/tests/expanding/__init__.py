"""Migrations of the next release's events, as one that expands would have them, after those of today's.

Django finds both here where MIGRATION_MODULES names this package.
"""

from pathlib import Path

from events import migrations

LATEST = max(path.stem for path in Path(migrations.__path__[0]).glob("0*.py"))

__path__.extend(migrations.__path__)
