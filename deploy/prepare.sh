#!/bin/sh
# What the compose stack needs before its first start: secrets, settings, the data folder and .env. What is there stays.
#   sh deploy/prepare.sh [VAULT]
set -eu
cd "$(dirname "$0")/.."
stack=${DUALWALL_STACK:-./.stack}
vault=${1:-./examples/vault}
umask 077
mkdir -p "$stack/secrets"

random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
# Readable by the users inside the containers; the folder keeps out everybody else on this machine.
keep() { [ -e "$stack/$1" ] || { printf '%s' "$2" >"$stack/$1" && chmod 644 "$stack/$1"; }; }

keep secrets/qdrant.key "$(random)"
keep secrets/qdrant.yaml "service:
  api_key: $(cat "$stack/secrets/qdrant.key")
"
keep secrets/neo4j.password "$(random)"
keep secrets/neo4j.auth "neo4j/$(cat "$stack/secrets/neo4j.password")"
[ -e "$stack/token" ] || printf 'dw_%s' "$(random)" >"$stack/token"
keep dualwall.toml "# Settings inside the stack; stores and the address come from docker-compose.yml. Every key: dualwall init --help
data = \"/data\"
timezone = \"UTC\"

[vaults.main]
source = \"/vault\"

[readers.me]
cubes = [\"global\"]
token_sha256 = \"$(sha256sum "$stack/token" | cut -c1-64)\"
"

uid=$(id -u) gid=$(id -g)
if [ "$uid" = 0 ]; then uid=1000 gid=1000; fi
mkdir -p "$stack/data"
[ "$(id -u)" != 0 ] || chown "$uid:$gid" "$stack/data"
[ -e .env ] || printf 'DUALWALL_UID=%s\nDUALWALL_GID=%s\nDUALWALL_VAULT="%s"\nDUALWALL_STACK=%s\n' "$uid" "$gid" "$vault" "$stack" >.env
echo "Ready: docker compose up --wait. The token of the reader \"me\" is in $stack/token."
