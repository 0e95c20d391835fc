"""The processes of the local stack: PostgreSQL, Valkey, SoftHSM, key hosts and the supervisor."""
