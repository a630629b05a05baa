#!/usr/bin/env bash
# Starts the MLX engine of setup-mlx-cpu.sh on a CPU, as a gRPC server.
#
#   test/engines/start-mlx-cpu.sh --grpc 50161
#   test/engines/start-mlx-cpu.sh --grpc 50161 --model smollm2 --release 0.4.14
#
#   --grpc PORT      serve mlx.grpc.engine.MlxEngine
#   --model NAME     a folder under $ENGINES, or a path (default: tiny)
#   --release N      protocol of its servicer: 0.4.28 (default) or 0.4.14
#
# Listens on 127.0.0.1 only. When it answers, the line "READY grpc 127.0.0.1:PORT" is printed on stdout. Runs until it gets SIGTERM or
# SIGINT. Log: $ENGINES/run/mlx-PORT.log. Exits 1 when the server ends by itself.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
ENGINES=${ENGINES:-$here/../../.cache/engines}
model=tiny grpc="" release=0.4.28
while [ $# -gt 0 ]; do
  case $1 in
    --grpc) grpc=$2; shift 2 ;;
    --model) model=$2; shift 2 ;;
    --release) release=$2; shift 2 ;;
    *) echo "start: unknown option $1" >&2; exit 2 ;;
  esac
done
[ -n "$grpc" ] || { echo "start: give --grpc PORT" >&2; exit 2; }
[ -d "$model" ] || model="$ENGINES/$model"
environment=mlx
[ "$release" = 0.4.28 ] || environment="mlx-$release"
mkdir -p "$ENGINES/run"
log="$ENGINES/run/mlx-$grpc.log"

export HF_HUB_OFFLINE=1 DO_NOT_TRACK=1
"$ENGINES/$environment/bin/python" -m smg_grpc_servicer.mlx.server --model "$model" --host 127.0.0.1 --port "$grpc" >"$log" 2>&1 &
pid=$!
trap 'trap - TERM INT; kill -TERM "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; exit 0' TERM INT

alive() {
  kill -0 "$pid" 2>/dev/null || {
    echo "start: the server ended" >&2
    tail -n 5 "$log" >&2
    exit 1
  }
}
until grep -q "gRPC server listening" "$log" 2>/dev/null; do alive; sleep 0.2; done
echo "READY grpc 127.0.0.1:$grpc"
while alive; do sleep 0.5; done
