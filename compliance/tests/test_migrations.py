"""No migration of the service's own holds up or breaks what runs beside it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.postgres.operations import AddConstraintNotValid, AddIndexConcurrently
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader

from compliance.tests.migration_lint import findings


def test_no_migration_locks_or_breaks() -> None:
    """Split what this names into an expanding release and a contracting one: docs/deployment.md, Migrations.

    The initial ones make what nobody uses yet.
    """
    loader = MigrationLoader(None, ignore_no_migrations=True)
    ours = {
        config.label
        for config in apps.get_app_configs()
        if Path(config.path).is_relative_to(settings.BASE_DIR) and ".venv" not in config.path
    }
    found = {
        f"{app}.{name}": said
        for (app, name), migration in sorted(loader.disk_migrations.items())
        if app in ours and not migration.initial and (said := sorted(findings(migration)))
    }

    assert found == {}


def operations() -> Iterator[tuple[str, list[migrations.operations.base.Operation], bool]]:
    text = models.TextField
    made = migrations.CreateModel("Thing", [("id", models.BigAutoField(primary_key=True))])
    index = models.Index(fields=["name"], name="by_name")
    yield "nullable column", [migrations.AddField("thing", "name", text(null=True))], True
    yield "database default", [migrations.AddField("thing", "name", text(db_default=""))], True
    yield (
        "new table",
        [made, migrations.AddField("thing", "name", text()), migrations.AddIndex("thing", index)],
        True,
    )
    yield "concurrent index", [AddIndexConcurrently("thing", index)], True
    yield "concurrent SQL", [migrations.RunSQL("CREATE INDEX CONCURRENTLY i ON t (x)")], True
    unlimited = migrations.RunSQL("SET lock_timeout = 0")
    yield "concurrent index without limit", [unlimited, AddIndexConcurrently("thing", index)], True
    yield "limited again", [unlimited, migrations.RunSQL("RESET lock_timeout"), made], True
    yield "lock without limit", [unlimited, migrations.RunSQL("CREATE INDEX i ON ONLY t (x)")], False
    yield "parents index", [migrations.RunSQL("CREATE INDEX IF NOT EXISTS i ON ONLY t (x)")], True
    rule = models.CheckConstraint(condition=models.Q(name="a"), name="named")
    yield "not valid yet", [AddConstraintNotValid("thing", rule)], True
    yield "valid at once", [migrations.AddConstraint("thing", rule)], False
    yield "checked later", [migrations.RunSQL("ALTER TABLE t ADD CONSTRAINT c CHECK (x > 0) NOT VALID")], True
    yield "default of Python", [migrations.AddField("thing", "name", text(default=""))], False
    yield "plain index", [migrations.AddIndex("thing", index)], False
    yield "indexed column", [migrations.AddField("thing", "name", text(null=True, db_index=True))], False
    yield "renamed column", [migrations.RenameField("thing", "name", "title")], False
    yield "dropped column", [migrations.RemoveField("thing", "name")], False
    yield "dropped table", [migrations.DeleteModel("Thing")], False
    yield "plain SQL index", [migrations.RunSQL("-- by name\nCREATE UNIQUE INDEX i ON t (x)")], False
    yield "NOT NULL", [migrations.RunSQL(["ALTER TABLE t ALTER x SET NOT NULL"])], False
    yield "rewrite", [migrations.RunSQL("ALTER TABLE t ALTER COLUMN x TYPE bigint")], False
    yield "checked at once", [migrations.RunSQL("ALTER TABLE t ADD CONSTRAINT c CHECK (x > 0)")], False
    inner = migrations.SeparateDatabaseAndState([migrations.RunSQL("ALTER TABLE t DROP COLUMN x")])
    yield "inside another", [inner], False


@pytest.mark.parametrize(
    ("operation", "is_safe"), [one[1:] for one in operations()], ids=[one[0] for one in operations()]
)
def test_lint_tells_safe_from_unsafe(operation, is_safe: bool) -> None:
    class Tried(migrations.Migration):
        operations = operation

    assert (list(findings(Tried("0002_tried", "things"))) == []) is is_safe
