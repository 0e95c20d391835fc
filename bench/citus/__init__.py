"""Events on a Citus cluster beside plain PostgreSQL of the same build."""
