#!/bin/sh
# Makes the files of secrets that docker-compose.yml mounts, in the folder `secrets` of the current folder. Passwords of
# PostgreSQL and Redis that there are already (POSTGRES_PASSWORD and REDIS_PASSWORD, in the environment or in a file .env)
# are kept; others are made by chance. A file that is there is left as it is. A password may hold any character but a line
# end: in a URL and in redis.conf it is written in the form that these take.
set -eu
[ -f docker-compose.yml ] || { echo "run it in the folder of docker-compose.yml" >&2; exit 64; }

# What a file .env says of a name: as it stands, or what the quotes around it hold.
from_env_file() {
  [ ! -f .env ] || sed -n "s/^$1=//p" .env | tail -n 1 | tr -d '\r' | sed -e "s/^'\(.*\)'\$/\1/" -e t \
    -e 's/^"\(.*\)"$/\1/' -e t0 -e b -e ':0' -e 's/\\\(["\\$]\)/\1/g'
}
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
# Each byte of the first argument in hexadecimal, behind the second.
bytes() { printf '%s' "$1" | od -An -v -tx1 | tr -d ' \n' | sed "s/../$2&/g"; }
in_url() { case $1 in *[!A-Za-z0-9._~-]*) bytes "$1" % ;; *) printf '%s' "$1" ;; esac; }
in_redis_conf() { case $1 in *[!A-Za-z0-9._~-]*) printf '"%s"' "$(bytes "$1" '\\x')" ;; *) printf '%s' "$1" ;; esac; }
from_redis_conf() {
  given=$(sed -n 's/^requirepass //p' secrets/redis.conf)
  case $given in
    '"\x'*) for byte in $(printf '%s' "$given" | tr -d '"' | sed 's/\\x/ 0x/g'); do printf "\\$(printf '%03o' "$byte")"; done ;;
    *) printf '%s' "$given" ;;
  esac
}
# Containers read the files as users of their own: the folder keeps others of this host out.
write() {
  [ -e "secrets/$1" ] || { cat >"secrets/$1.new" && chmod 644 "secrets/$1.new" && mv "secrets/$1.new" "secrets/$1"; }
}

postgres=${POSTGRES_PASSWORD:-$(from_env_file POSTGRES_PASSWORD)}
redis=${REDIS_PASSWORD:-$(from_env_file REDIS_PASSWORD)}
mkdir -p secrets
chmod 700 secrets
[ ! -e secrets/postgres-password ] || postgres=$(cat secrets/postgres-password)
[ ! -e secrets/redis.conf ] || redis=$(from_redis_conf)
postgres=${postgres:-$(random)}
redis=${redis:-$(random)}
case "$postgres$redis" in
  *'
'*) echo "a password with a line end can't be used" >&2; exit 64 ;;
esac

printf '%s' "$postgres" | write postgres-password
printf 'requirepass %s\n' "$(in_redis_conf "$redis")" | write redis.conf
printf 'DATABASE_URL=postgres://tokenmill:%s@postgres:5432/tokenmill\n' "$(in_url "$postgres")" | write store.env
printf 'REDIS_URL=redis://:%s@redis:6379\n' "$(in_url "$redis")" | write queue.env
printf '%s' "$(random)" | write grafana-password
