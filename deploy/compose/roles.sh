#!/bin/sh
# The database roles of docs/operations.md, made by PostgreSQL's image at its first start.
set -eu
psql --username postgres --set ON_ERROR_STOP=1 \
  --set owner="$(cat /run/secrets/owner-password)" --set app="$(cat /run/secrets/app-password)" <<'SQL'
CREATE ROLE service_owner LOGIN PASSWORD :'owner';
CREATE ROLE service_app LOGIN PASSWORD :'app';
CREATE ROLE service_auditor;
GRANT service_auditor TO service_app WITH INHERIT FALSE;
CREATE DATABASE service_live OWNER service_owner;
CREATE DATABASE service_test OWNER service_owner;
SQL
