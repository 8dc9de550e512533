#!/usr/bin/env bash
# Pins what pyproject.toml asks for, with hashes: base.txt (`make demo`), dev.txt (base and the tools of `make check` and `make test`).
# Usage: requirements/lock.sh [--upgrade]
set -euo pipefail
cd "$(dirname "$0")/.."

lock() {
    local out=$1
    shift
    pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe --no-header --annotation-style line \
        --no-emit-index-url --no-emit-find-links --no-emit-trusted-host -o "requirements/$out" "$@" pyproject.toml
    # The project names itself through its extras; a line for it would hold a path of this machine.
    sed -i -e '/^fairlead @ /d' -e '/^# WARNING/d' -e '/^# Consider using a hashable/d' -e '/^# Please note that/d' \
        -e '/^# The following packages/d' \
        -e 's/, fairlead (pyproject.toml)//' "requirements/$out"
    if grep -nE '^#|://' "requirements/$out"; then
        echo "requirements/$out: the lines above do not belong in a lock file" >&2
        return 1
    fi
}

lock base.txt --extra build --extra demo "$@"
# Not dependencies of the project: `frontend/build.py` installs node.txt where a machine has no Node.js, and clients/
# holds clients for tests whose pins are not ours; images/tools is what the images are built with. clients/perf-analyzer.txt is kept by hand: no newer one runs on Debian 12.
for name in node clients/go clients/kserve images/tools; do
    pip-compile --quiet --generate-hashes --no-header --no-annotate --strip-extras --allow-unsafe --no-emit-index-url \
        --no-emit-find-links --no-emit-trusted-host "$@" -o "requirements/$name.txt" "requirements/$name.in"
done
lock dev.txt --extra build --extra demo --extra dev --constraint requirements/base.txt "$@"
# What the images hold (docker/Dockerfile): of dev.txt, at its versions and with its hashes; CUDA is not in it.
lock_image() {
    local out=images/$1.txt
    shift
    cp requirements/dev.txt "requirements/$out"
    lock "$out" --constraint requirements/dev.txt --extra s3 --extra gs "$@"
}
control_plane=(--extra control-plane --extra serving --extra postgres --extra redis)
formats=(--extra lightgbm --extra openvino --extra sklearn --extra xgboost-cpu)
lock_image control-plane "${control_plane[@]}" "$@"
lock_image one-machine "${control_plane[@]}" --extra local "${formats[@]}" "$@"
lock_image runtime-cpu --extra serving-cpu --extra tracing "${formats[@]}" "$@"
lock_image runtime-cuda --extra serving-cuda --extra tracing "${formats[@]}" "$@"
