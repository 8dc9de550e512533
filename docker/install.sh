#!/bin/sh
# Makes a virtual environment of what a lock file pins, or adds that to one.
# Usage: docker/install.sh FOLDER LOCK.txt
set -eu
folder=$1 lock=$2
python3 -m venv --without-pip "$folder"
pip --python "$folder/bin/python" --disable-pip-version-check install --quiet --no-cache-dir --no-compile --no-deps \
    --only-binary :all: --require-hashes -r "$lock"
cd "$folder"/lib/python3*/site-packages
# Nothing here runs packages' own tests, compiles against them, or uses Kubernetes' second client, which is for asyncio,
# or OpenVINO's devices other than the CPU.
find . -type d -name tests -prune -exec rm -rf {} +
rm -rf kubernetes/aio torch/include nvidia/*/include openvino/include openvino/cmake \
    openvino/libs/libopenvino_intel_[gn]pu_plugin.so openvino/libs/cache.json
