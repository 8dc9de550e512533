#!/bin/sh
# Compiles the Python files below a folder. What is compiled fits its source by content: the times in a release's layers
# are not those of the build, so that Python would compile again at each start what fits by time.
# Usage: docker/compile.sh FOLDER
set -eu
# Some packages have templates that are no Python: those alone stay as they are.
PYTHONHASHSEED=0 python3 -m compileall -qq --invalidation-mode checked-hash "$1" || :
