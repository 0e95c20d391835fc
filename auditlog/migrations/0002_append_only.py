"""The database itself refuses to change, delete or truncate audit entries."""

from django.db import migrations

GUARD = """
CREATE FUNCTION auditlog_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit entries are append-only: % refused', TG_OP
        USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER auditlog_no_change BEFORE UPDATE OR DELETE ON auditlog_auditentry
    FOR EACH ROW EXECUTE FUNCTION auditlog_refuse_change();
CREATE TRIGGER auditlog_no_truncate BEFORE TRUNCATE ON auditlog_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION auditlog_refuse_change();
"""

UNGUARD = """
DROP TRIGGER auditlog_no_truncate ON auditlog_auditentry;
DROP TRIGGER auditlog_no_change ON auditlog_auditentry;
DROP FUNCTION auditlog_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("auditlog", "0001_initial")]

    operations = [migrations.RunSQL(GUARD, UNGUARD)]
