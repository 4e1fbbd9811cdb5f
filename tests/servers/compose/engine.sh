#!/usr/bin/env bash
# A real Docker engine, Compose v2 and the images that the stack starts from, made where no image registry is reached.
#
#   engine.sh install             Debian's docker.io, iptables and debootstrap
#   engine.sh compose DIR         builds DIR/docker-compose from Compose's Go module (5 minutes, once)
#   engine.sh start DIR           starts dockerd with its data in DIR, unless it runs; prints its address
#   engine.sh base DIR TAG PKG…   makes a Debian image TAG with these packages (2 minutes, once)
#   engine.sh stop DIR
set -euo pipefail
compose_version=v2.40.3
verb=${1:?install, compose, start, base or stop}
shift

case $verb in
install)
  command -v dockerd >/dev/null && command -v debootstrap >/dev/null && command -v iptables >/dev/null && exit 0
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker.io iptables debootstrap >/dev/null
  ;;
compose)
  dir=$(mkdir -p "$1" && cd "$1" && pwd)
  [ ! -x "$dir/docker-compose" ] || exit 0
  work=$(mktemp -d)
  trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
  cd "$work"
  go mod init test.invalid/compose 2>/dev/null
  go get -tool "github.com/docker/compose/v2/cmd@$compose_version" 2>/dev/null
  go build -ldflags "-s -w -X github.com/docker/compose/v2/internal.Version=$compose_version" \
    -o "$dir/docker-compose" github.com/docker/compose/v2/cmd
  ;;
start)
  dir=$(mkdir -p "$1" && cd "$1" && pwd)
  export DOCKER_HOST=unix://$dir/docker.sock
  if ! /usr/bin/docker info >/dev/null 2>&1; then
    rm -f "$dir/pid"
    setsid nohup /usr/sbin/dockerd --data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/pid" -H "$DOCKER_HOST" \
      >"$dir/dockerd.log" 2>&1 </dev/null &
  fi
  for _ in $(seq 60); do
    if /usr/bin/docker info >/dev/null 2>&1; then
      echo "$DOCKER_HOST"
      exit 0
    fi
    sleep 1
  done
  tail -n 20 "$dir/dockerd.log" >&2
  exit 1
  ;;
base)
  dir=$(cd "$1" && pwd)
  tag=$2
  shift 2
  export DOCKER_HOST=unix://$dir/docker.sock
  ! /usr/bin/docker image inspect "$tag" >/dev/null 2>&1 || exit 0
  sources=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2>/dev/null || true)
  mirror=$(sed -n -e 's/^URIs: *//p' -e 's/^deb  *\(\[[^]]*\] *\)\{0,1\}\(http[^ ]*\).*/\2/p' <<<"$sources" | sed -n 1p)
  root=$(mktemp -d)
  trap 'rm -rf "$root"' EXIT
  debootstrap --variant=minbase --include="$(IFS=,; echo "ca-certificates,$*")" bookworm "$root" "$mirror" >"$dir/debootstrap.log"
  tar -C "$root" -c . | /usr/bin/docker import - "$tag" >/dev/null
  ;;
stop)
  dir=$(cd "$1" && pwd)
  [ ! -f "$dir/pid" ] || kill "$(cat "$dir/pid")"
  ;;
*)
  echo "unknown verb: $verb" >&2
  exit 2
  ;;
esac
