"""Placement of tables in a Citus cluster."""
