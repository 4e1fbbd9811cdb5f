#!/usr/bin/env bash
# As the official image: NEO4J_a_b__c=value becomes a.b_c=value, and NEO4J_AUTH_FILE sets the first password of an empty /data.
set -euo pipefail
{
  echo server.directories.data=/data
  echo server.directories.logs=/logs
  echo server.default_listen_address=0.0.0.0
  env | while IFS='=' read -r name value; do
    case $name in
      NEO4J_HOME | NEO4J_CONF | NEO4J_VERSION | NEO4J_AUTH_FILE) ;;
      NEO4J_*)
        key=${name#NEO4J_}
        key=${key//__/%}
        key=${key//_/.}
        echo "${key//%/_}=$value"
        ;;
    esac
  done
} >"$NEO4J_CONF/neo4j.conf"
java=(java -cp "$NEO4J_HOME/lib/*" -Dfile.encoding=UTF-8 -Dio.netty.tryReflectionSetAccessible=true
  --add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/java.io=ALL-UNNAMED
  --add-opens=java.base/sun.nio.ch=ALL-UNNAMED --add-opens=java.base/java.util.concurrent=ALL-UNNAMED)
auth=$(cat "$NEO4J_AUTH_FILE")
if [ ! -d /data/databases/system ]; then
  "${java[@]}" org.neo4j.server.startup.Neo4jAdminCommand dbms set-initial-password "${auth#neo4j/}"
fi
main=$(unzip -p "$NEO4J_HOME/lib/neo4j-$NEO4J_VERSION.jar" META-INF/services/org.neo4j.server.startup.EntryPoint)
exec "${java[@]}" -Xmx"${NEO4J_server_memory_heap_max__size:-512m}" "$main" --home-dir="$NEO4J_HOME" --config-dir="$NEO4J_CONF" --console-mode
