#!/bin/sh
# Adds to an image's virtual environment what the build argument MORE pins, in the words of a lock file, compiles it all,
# and writes its bill of materials.
# Usage: docker/finish.sh NAME
set -eu
if [ -n "${MORE:-}" ]; then
    printf '%s\n' "$MORE" >/tmp/more.txt
    docker/install.sh /opt/fairlead /tmp/more.txt
fi
docker/compile.sh /opt/fairlead/lib
/opt/tools/bin/python docker/sbom.py /opt/fairlead /base-packages "$1"
