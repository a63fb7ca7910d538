"""The layouts of a ledger's schema in PostgreSQL, each as the step from the one before, and who may write to it.

A step is never edited: a new one is added. What the catalogue must say of a layout stands beside its steps.
"""

from __future__ import annotations

STAY = " BEGIN RAISE EXCEPTION 'entries are never changed or removed' ; END "
FOLLOW = """
DECLARE last RECORD;
BEGIN
    SELECT seq, hash INTO last FROM margrave.entries ORDER BY seq DESC LIMIT 1;
    IF NEW.seq <> coalesce(last.seq, 0) + 1 OR NEW.before <> coalesce(last.hash, repeat('0', 64)) THEN
        RAISE EXCEPTION 'an entry follows the last one';
    END IF;
    RETURN NEW;
END """
ALONE = " BEGIN LOCK TABLE margrave.entries IN EXCLUSIVE MODE; END "
PLPGSQL, FIXED = "LANGUAGE plpgsql", "SET search_path = pg_catalog"
ENTRIES = "seq BIGINT PRIMARY KEY, before TEXT NOT NULL, text TEXT NOT NULL, hash TEXT NOT NULL UNIQUE"


def _refusing(name: str, table: str) -> str:
    when = f"BEFORE UPDATE OR DELETE OR TRUNCATE ON margrave.{table}"
    return f"CREATE TRIGGER {name} {when} FOR EACH STATEMENT EXECUTE FUNCTION margrave.stay()"


FIRST = (
    "CREATE SCHEMA margrave",
    f"CREATE TABLE margrave.entries({ENTRIES})",
    "CREATE TABLE margrave.confidential(name TEXT PRIMARY KEY, value BYTEA NOT NULL)",
    "CREATE TABLE margrave.layout(version INTEGER NOT NULL)",
    "INSERT INTO margrave.layout VALUES(1)",
    f"CREATE FUNCTION margrave.stay() RETURNS trigger {PLPGSQL} AS $${STAY}$$",
    _refusing("entries_stay", "entries"),
    _refusing("secrets_stay", "confidential"),
    "REVOKE ALL ON SCHEMA margrave FROM PUBLIC",
)
SECOND = (
    "INSERT INTO margrave.layout VALUES(2)",
    _refusing("layout_stay", "layout"),
    f"CREATE FUNCTION margrave.follow() RETURNS trigger {PLPGSQL} {FIXED} AS $${FOLLOW}$$",
    "CREATE TRIGGER entries_follow BEFORE INSERT ON margrave.entries FOR EACH ROW EXECUTE FUNCTION margrave.follow()",
    f"CREATE PROCEDURE margrave.write_alone() {PLPGSQL} SECURITY DEFINER {FIXED} AS $${ALONE}$$",
    "REVOKE ALL ON PROCEDURE margrave.write_alone() FROM PUBLIC",
    "ALTER TABLE margrave.entries ENABLE ALWAYS TRIGGER entries_stay",
    "ALTER TABLE margrave.entries ENABLE ALWAYS TRIGGER entries_follow",
    "ALTER TABLE margrave.confidential ENABLE ALWAYS TRIGGER secrets_stay",
    "ALTER TABLE margrave.layout ENABLE ALWAYS TRIGGER layout_stay",
)
"""Whoever may only insert cannot lock a table, so a procedure does that with the owner's rights."""

STEPS = (FIRST, SECOND)
ALONE_SINCE = 2
"""The first layout with the procedure that excludes other writers."""

REFUSING, FOLLOWING = 58, 7
"""Triggers before every update, removal and truncation of a table; before every inserted row."""
TRIGGERS = (
    {
        ("trigger entries_stay", f"entries {REFUSING} O stay"),
        ("trigger secrets_stay", f"confidential {REFUSING} O stay"),
    },
    {
        ("trigger entries_stay", f"entries {REFUSING} A stay"),
        ("trigger secrets_stay", f"confidential {REFUSING} A stay"),
        ("trigger layout_stay", f"layout {REFUSING} A stay"),
        ("trigger entries_follow", f"entries {FOLLOWING} A follow"),
    },
)
FUNCTIONS = ({("function stay", STAY)}, {("function follow", FOLLOW), ("function write_alone", ALONE)})
INDEXES = {(f"index {name}", "unique") for name in ("entries_pkey", "entries_hash_key", "confidential_pkey")}
FOUND = """
SELECT 'trigger ' || tgname, relname || ' ' || tgtype || ' ' || tgenabled::text || ' ' || proname
FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid JOIN pg_proc ON pg_proc.oid = tgfoid
WHERE relnamespace = 'margrave'::regnamespace AND NOT tgisinternal
UNION ALL SELECT 'function ' || proname, prosrc FROM pg_proc WHERE pronamespace = 'margrave'::regnamespace
UNION ALL SELECT 'index ' || relname, CASE WHEN indisunique AND indisvalid THEN 'unique' ELSE 'not unique' END
FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = 'margrave'::regnamespace
UNION ALL SELECT 'rule ' || rulename, tablename FROM pg_rules WHERE schemaname = 'margrave'
"""
"""What the catalogue says of the schema: everything that keeps entries as they are."""
TOO_FREE = """
SELECT DISTINCT coalesce(rolname, 'everybody')::text, relname::text
FROM pg_class CROSS JOIN LATERAL aclexplode(relacl) AS given LEFT JOIN pg_roles ON pg_roles.oid = given.grantee
WHERE relnamespace = 'margrave'::regnamespace AND given.grantee <> relowner
AND given.privilege_type IN ('UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER')
"""
"""Who was given more than inserting: nobody, in a ledger as it is made."""


def steps(before: int, after: int) -> list[str]:
    """The statements that lead from a layout to a later one; from 0, where nothing is yet."""
    return [one for step in STEPS[before:after] for one in step]


def expected(layout: int) -> set[tuple[str, str]]:
    """What `FOUND` answers of a layout as it is made."""
    return TRIGGERS[layout - 1] | INDEXES | {one for known in FUNCTIONS[:layout] for one in known}


def writer_of(database: str) -> str:
    """The role whose members may add entries to the ledger of a database and change none, as SQL writes it."""
    name = f"margrave_writer_{database}"[:63].replace('"', '""')
    return f'"{name}"'


def grants(role: str) -> list[str]:
    """What that role needs, and all it gets."""
    return [
        f"GRANT USAGE ON SCHEMA margrave TO {role}",
        f"GRANT SELECT, INSERT ON margrave.entries, margrave.confidential TO {role}",
        f"GRANT SELECT ON margrave.layout TO {role}",
        f"GRANT EXECUTE ON PROCEDURE margrave.write_alone() TO {role}",
    ]
