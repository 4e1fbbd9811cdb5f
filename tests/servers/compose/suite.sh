#!/usr/bin/env bash
# Runs the contract suite and the tests of Qdrant's own against a Qdrant server: the compose stack's, or DUALWALL_TEST_QDRANT_URL.
#
#   tests/servers/compose/suite.sh            starts qdrant of docker-compose.yml, runs by HTTP and by gRPC, stops it
#
# The stack's server listens on its internal network only, so an override publishes it on localhost for as long as this runs.
# Each test makes a collection of its own and deletes it; the palace's is not touched.
set -euo pipefail
cd "$(dirname "$0")/../../.."
python=${PYTHON:-.venv/bin/python}

if [ -z "${DUALWALL_TEST_QDRANT_URL:-}" ]; then
  sh deploy/prepare.sh
  # shellcheck disable=SC1091
  . ./.env
  compose=(docker compose --file docker-compose.yml --file tests/servers/compose/published.yml)
  trap '"${compose[@]}" stop qdrant' EXIT
  "${compose[@]}" up --wait qdrant
  export DUALWALL_TEST_QDRANT_URL=http://127.0.0.1:6333 DUALWALL_TEST_QDRANT_GRPC_PORT=6334
  export DUALWALL_TEST_QDRANT_KEY_FILE=$DUALWALL_STACK/secrets/qdrant.key
fi

tests=(tests/contracts/test_vectors.py tests/contracts/test_vectors_walls.py tests/contracts/test_qdrant.py)
for port in 0 ${DUALWALL_TEST_QDRANT_GRPC_PORT:+"$DUALWALL_TEST_QDRANT_GRPC_PORT"}; do
  DUALWALL_TEST_QDRANT_GRPC_PORT=$port "$python" -m pytest -q -k qdrant "${tests[@]}"
done
