"""Lists move into parts; the database itself refuses a list whose number does not rise."""

from django.db import migrations

MOVE = """
SET CONSTRAINTS ALL IMMEDIATE;
ALTER TABLE certificates_revocationlistpart ALTER COLUMN body SET STORAGE EXTERNAL;
INSERT INTO certificates_revocationlistpart (revocation_list_id, position, body)
    SELECT id, 0, der FROM certificates_revocationlist;
UPDATE certificates_revocationlist SET size = octet_length(der);
UPDATE certificates_certificateauthority SET crl_completed = crl_number;
"""

GUARD = """
CREATE FUNCTION certificates_list_number_rises() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Whoever else adds a list of this CA waits here, and then sees this one.
    PERFORM 1 FROM certificates_certificateauthority WHERE id = NEW.authority_id FOR NO KEY UPDATE;
    IF EXISTS (
        SELECT 1 FROM certificates_revocationlist
        WHERE authority_id = NEW.authority_id AND scope = NEW.scope AND number >= NEW.number
    ) THEN
        RAISE EXCEPTION 'the number of a revocation list only rises: % refused', NEW.number
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER certificates_list_number_rises BEFORE INSERT ON certificates_revocationlist
    FOR EACH ROW EXECUTE FUNCTION certificates_list_number_rises();
CREATE FUNCTION certificates_crl_number_rises() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the list number of a CA only rises' USING ERRCODE = 'integrity_constraint_violation';
END
$$;
CREATE TRIGGER certificates_crl_number_rises BEFORE UPDATE ON certificates_certificateauthority
    FOR EACH ROW WHEN (NEW.crl_number < OLD.crl_number) EXECUTE FUNCTION certificates_crl_number_rises();
"""

UNGUARD = """
DROP TRIGGER certificates_crl_number_rises ON certificates_certificateauthority;
DROP FUNCTION certificates_crl_number_rises();
DROP TRIGGER certificates_list_number_rises ON certificates_revocationlist;
DROP FUNCTION certificates_list_number_rises();
"""


class Migration(migrations.Migration):
    dependencies = [("certificates", "0002_lists_in_scopes_and_parts")]

    operations = [
        migrations.RunSQL(MOVE, migrations.RunSQL.noop),
        migrations.RemoveField(model_name="revocationlist", name="der"),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
