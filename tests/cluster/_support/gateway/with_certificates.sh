#!/bin/sh
# with_certificates.sh ROOT FOLDER COMMAND...: runs the command with FOLDER at /certs, which is made for it alone.
# Called in a mount namespace of its own; ROOT is an empty folder, and becomes a root with all that the real one has.
set -e
root=$1 certificates=$2
shift 2
mount -t tmpfs tmpfs "$root"
for each in /*; do
    if [ -L "$each" ]; then
        cp -P "$each" "$root$each"
    elif [ -d "$each" ]; then
        mkdir "$root$each"
        mount --rbind "$each" "$root$each"
    fi
done
mkdir -p "$root/certs"
mount --bind "$certificates" "$root/certs"
exec chroot "$root" "$@"
