#!/bin/sh
# Installs a lock file or a wheel of ours into a virtual environment, which is made where it is missing.
# Usage: docker/install.sh FOLDER LOCK.txt|WHEEL.whl
set -eu
folder=$1 what=$2
[ -x "$folder/bin/python" ] || python3 -m venv --without-pip "$folder"
install() {
    pip --python "$folder/bin/python" --disable-pip-version-check install --quiet --no-cache-dir --no-deps --only-binary :all: "$@"
}
case $what in
*.whl) install "$what" ;;
*) install --require-hashes -r "$what" ;;
esac
# Nothing here runs packages' own tests, nor Kubernetes' second client, which is for asyncio.
rm -rf "$folder"/lib/python3*/site-packages/kubernetes/aio
find "$folder/lib" -type d -name tests -prune -exec rm -rf {} +
