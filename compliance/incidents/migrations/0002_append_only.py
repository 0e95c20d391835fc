"""The database itself refuses to change, delete or truncate timelines and frozen drafts."""

from django.db import migrations

GUARD = """
CREATE FUNCTION incidents_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER incidents_timeline_no_change BEFORE UPDATE OR DELETE ON incidents_timelineentry
    FOR EACH ROW EXECUTE FUNCTION incidents_refuse_change();
CREATE TRIGGER incidents_timeline_no_truncate BEFORE TRUNCATE ON incidents_timelineentry
    FOR EACH STATEMENT EXECUTE FUNCTION incidents_refuse_change();
CREATE TRIGGER incidents_draft_no_change BEFORE UPDATE OR DELETE ON incidents_notificationdraft
    FOR EACH ROW EXECUTE FUNCTION incidents_refuse_change();
CREATE TRIGGER incidents_draft_no_truncate BEFORE TRUNCATE ON incidents_notificationdraft
    FOR EACH STATEMENT EXECUTE FUNCTION incidents_refuse_change();
"""

UNGUARD = """
DROP TRIGGER incidents_draft_no_truncate ON incidents_notificationdraft;
DROP TRIGGER incidents_draft_no_change ON incidents_notificationdraft;
DROP TRIGGER incidents_timeline_no_truncate ON incidents_timelineentry;
DROP TRIGGER incidents_timeline_no_change ON incidents_timelineentry;
DROP FUNCTION incidents_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("incidents", "0001_initial")]

    operations = [migrations.RunSQL(GUARD, UNGUARD)]
