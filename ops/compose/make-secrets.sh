#!/bin/sh
# Makes the files of secrets that docker-compose.yml mounts, in the folder `secrets` of the current folder. Passwords of
# PostgreSQL and Redis that there are already (POSTGRES_PASSWORD and REDIS_PASSWORD, in the environment or in a file .env)
# are kept; others are made by chance. A file that is there is left as it is.
set -eu
[ -f docker-compose.yml ] || { echo "run it in the folder of docker-compose.yml" >&2; exit 64; }

# What a file .env says of a name, without quotes.
from_env_file() {
  [ ! -f .env ] || sed -n "s/^$1=//p" .env | tail -n 1 | tr -d "\"'"
}
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
# Containers read the files as users of their own: the folder keeps others of this host out.
write() {
  [ -e "secrets/$1" ] || { cat >"secrets/$1.new" && chmod 644 "secrets/$1.new" && mv "secrets/$1.new" "secrets/$1"; }
}

postgres=${POSTGRES_PASSWORD:-$(from_env_file POSTGRES_PASSWORD)}
redis=${REDIS_PASSWORD:-$(from_env_file REDIS_PASSWORD)}
mkdir -p secrets
chmod 700 secrets
[ ! -e secrets/postgres-password ] || postgres=$(cat secrets/postgres-password)
[ ! -e secrets/redis.conf ] || redis=$(sed -n 's/^requirepass //p' secrets/redis.conf)
postgres=${postgres:-$(random)}
redis=${redis:-$(random)}

printf '%s' "$postgres" | write postgres-password
printf 'requirepass %s\n' "$redis" | write redis.conf
printf 'DATABASE_URL=postgres://tokenmill:%s@postgres:5432/tokenmill\n' "$postgres" | write store.env
printf 'REDIS_URL=redis://:%s@redis:6379\n' "$redis" | write queue.env
printf '%s' "$(random)" | write grafana-password
