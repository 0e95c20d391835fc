"""The processes of the local stack: PostgreSQL, Valkey, SoftHSM and the supervisor."""
