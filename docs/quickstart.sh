#!/usr/bin/env bash
# docs/quickstart.sh - what `./dev quickstart` shows: a standalone worker on its own in-process broker, a
# FileStream source and sink registered over REST, lines that travel from one file through a topic into another.
#   --exit   leave after the demonstration; status 0 only if the lines arrived
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

leave=
[ "${1:-}" != --exit ] || leave=1
port=${QUICKSTART_PORT:-8083}
dir=$(mktemp -d /tmp/luaconnect-quickstart.XXXXXX)
url=http://127.0.0.1:$port
worker=

end() {
  if [ -n "$worker" ] && kill -0 "$worker" 2> /dev/null; then
    kill -TERM "$worker"
    wait "$worker" || true
  fi
  rm -rf "$dir"
}
trap end EXIT
trap 'exit 130' INT TERM

step() { printf '\n\033[1m%s\033[0m\n' "$*"; }
fail() { echo "quickstart: $*" >&2; echo "--- the worker's log:" >&2; tail -40 "$dir/worker.log" >&2; exit 1; }
wait_for() { # SECONDS WHAT COMMAND...
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" > /dev/null 2>&1; do
    kill -0 "$worker" 2> /dev/null || fail "the worker ended"
    [ $SECONDS -lt $deadline ] || fail "waited for $what"
    sleep 0.1
  done
}
call() { # METHOD PATH [JSON]: shows the request and its answer
  printf '  \033[36mcurl -X %s %s%s' "$1" "$url" "$2"
  [ -z "${3:-}" ] || printf " -H 'Content-Type: application/json' -d '%s'" "$3"
  printf '\033[0m\n  '
  curl -s -X "$1" "$url$2" ${3:+-H 'Content-Type: application/json' -d "$3"}
  echo
}
has_line() { grep -qxF "$2" "$1"; }
running() { curl -sf "$url/connectors/$1/status" | grep -q '"tasks":\[{[^]]*"state":"RUNNING"'; }

cat > "$dir/worker.properties" <<P
# --embedded-broker sets bootstrap.servers
bootstrap.servers=127.0.0.1:9092
listeners=http://127.0.0.1:$port
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
offset.storage.file.filename=$dir/offsets
offset.flush.interval.ms=1000
P
: > "$dir/in.txt"

step "1. A worker with a broker inside: build/luaconnect standalone --embedded-broker=lines worker.properties"
build/luaconnect standalone --embedded-broker=lines "$dir/worker.properties" > "$dir/worker.log" 2>&1 &
worker=$!
wait_for 30 "the REST API on port $port" curl -sf "$url/health"
call GET /

step "2. A source that reads $dir/in.txt, a sink that writes $dir/out.txt"
call PUT /connectors/file-source/config \
  "{\"connector.class\":\"FileStreamSource\",\"file\":\"$dir/in.txt\",\"topic\":\"lines\"}"
call PUT /connectors/file-sink/config \
  "{\"connector.class\":\"FileStreamSink\",\"file\":\"$dir/out.txt\",\"topics\":\"lines\"}"
wait_for 30 "the source to run" running file-source
wait_for 30 "the sink to run" running file-sink

step "3. Three lines, and where they land"
printf '%s\n' 'hello from a file' 'through a topic' 'into another file' >> "$dir/in.txt"
wait_for 60 "the lines in $dir/out.txt" has_line "$dir/out.txt" 'into another file'
sed 's/^/  out.txt: /' "$dir/out.txt"
cmp -s "$dir/in.txt" "$dir/out.txt" || fail "out.txt differs from in.txt"

step "4. What the REST API says"
call GET /connectors/file-source/status
call GET /connectors/file-sink/topics
offset_there() { curl -sf "$url/connectors/file-source/offsets" | grep -q '"position":52'; }
wait_for 30 "the source's offset" offset_there
call GET /connectors/file-source/offsets

if [ -n "$leave" ]; then
  step "The lines arrived."
  exit 0
fi
step "5. Go on: the worker stays until Ctrl-C"
cat <<T
  echo 'one more' >> $dir/in.txt; tail -f $dir/out.txt
  curl $url/connectors?expand=status
  curl -X PUT $url/connectors/file-source/pause
  curl -X PUT $url/connectors/file-source/resume
  curl -X DELETE $url/connectors/file-sink
  curl $url/connector-plugins
  The worker's log: $dir/worker.log
T
wait "$worker"
