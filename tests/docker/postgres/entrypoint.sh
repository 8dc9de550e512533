#!/bin/sh
# Makes the database on first use, as the public image does, then runs what it was asked to.
set -eu
if [ "$1" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
    printf %s "$POSTGRES_PASSWORD" >/tmp/password
    # shellcheck disable=SC2086 - several options
    initdb --username "$POSTGRES_USER" --pwfile /tmp/password $POSTGRES_INITDB_ARGS >/dev/null
    pg_ctl --wait --options "-c listen_addresses= -c unix_socket_directories=/tmp" start >/dev/null
    PGPASSWORD=$POSTGRES_PASSWORD createdb --host /tmp --username "$POSTGRES_USER" "$POSTGRES_DB"
    pg_ctl --wait stop >/dev/null
    rm /tmp/password
fi
exec "$@"
