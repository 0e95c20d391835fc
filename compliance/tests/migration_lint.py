"""Operations of migrations that hold up a running service or break the version before."""

import re
from collections.abc import Iterator
from typing import Any

from django.contrib.postgres.operations import (
    AddConstraintNotValid,
    AddIndexConcurrently,
    RemoveIndexConcurrently,
)
from django.db import migrations, models
from django.db.migrations.migration import Migration
from django.db.migrations.operations.base import Operation

# Of SQL written by hand, comments left out.
STATEMENTS = {
    # ON ONLY makes no index of rows: those of partitions are made one by one, and attached.
    "index not CONCURRENTLY": r"\b(CREATE( UNIQUE)?|DROP) INDEX (?!CONCURRENTLY|[^(]* ON ONLY )",
    "NOT NULL set": r"\bSET NOT NULL\b",
    "column dropped": r"\bDROP COLUMN\b",
    "renamed": r"\bRENAME (COLUMN|TO)\b",
    "type changed": r"\bALTER COLUMN \S+ (SET DATA )?TYPE\b",
    "table dropped": r"\bDROP TABLE\b",
    "constraint not NOT VALID": r"\bADD CONSTRAINT (?!.*\bNOT VALID\b)[^;]*",
}
CONCURRENT = (AddIndexConcurrently, RemoveIndexConcurrently)
RENAMES = (migrations.RenameField, migrations.RenameModel, migrations.AlterModelTable)
REMOVALS = (migrations.RemoveField, migrations.DeleteModel)


def findings(migration: Migration) -> Iterator[str]:
    """Yield what is wrong with each operation; on a table that the migration itself makes, nothing is."""
    made: set[str] = set()
    is_unlimited = False
    for operation in migration.operations:
        parts = [operation, *getattr(operation, "database_operations", ())]
        text = " ".join(str(getattr(part, "sql", "")) for part in parts)
        if "lock_timeout" in text:
            is_unlimited = "lock_timeout = 0" in text
        elif is_unlimited and not isinstance(operation, CONCURRENT) and "CONCURRENTLY" not in text:
            yield f"waits for a lock without limit: {operation.describe()}"
        if isinstance(operation, migrations.CreateModel):
            made.add(operation.name.lower())
        yield from _of_operation(operation, made)


def _of_operation(operation: Operation, made: set[str]) -> Iterator[str]:
    if isinstance(operation, migrations.SeparateDatabaseAndState):
        for inner in operation.database_operations:
            yield from _of_operation(inner, made)
        return
    if isinstance(operation, migrations.RunSQL):
        yield from _of_sql(operation)
        return
    model = getattr(operation, "model_name", getattr(operation, "name", ""))
    if not isinstance(model, str) or model.lower() in made:
        return
    problem = _problem(operation)
    if problem:
        yield f"{problem}: {operation.describe()}"


def _problem(operation: Operation) -> str:
    if isinstance(operation, RENAMES):
        return "renamed"
    if isinstance(operation, REMOVALS):
        return "removed"
    if isinstance(operation, (AddConstraintNotValid, *CONCURRENT)):
        return ""
    if isinstance(operation, (migrations.AddIndex, migrations.RemoveIndex)):
        return "index not CONCURRENTLY"
    if isinstance(operation, migrations.AddConstraint):
        return "constraint checked at once"
    if isinstance(operation, migrations.AddField):
        return _of_new_field(operation.field)
    return ""


def _of_new_field(field: Any) -> str:
    if field.many_to_many:
        return ""
    # The version before inserts rows without this column.
    if not field.null and field.db_default is models.NOT_PROVIDED:
        return "column NOT NULL without a default of the database"
    if field.unique or field.db_index:
        return "column with an index that is not made CONCURRENTLY"
    return ""


def _of_sql(operation: migrations.RunSQL) -> Iterator[str]:
    for statement in operation.sql if isinstance(operation.sql, (list, tuple)) else [operation.sql]:
        text = statement if isinstance(statement, str) else statement[0]
        bare = " ".join(re.sub(r"--[^\n]*", "", text).split())
        for problem, pattern in STATEMENTS.items():
            if re.search(pattern, bare, re.IGNORECASE):
                yield f"{problem}: raw SQL"
