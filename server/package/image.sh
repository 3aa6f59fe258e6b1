#!/bin/sh
# image.sh OUT -- an OCI image of hearthd and hearth as a layout in the directory OUT, made of Debian 12 and the packages of
# `./dev package`. Needs root, mmdebstrap and umoci, and no container engine.
set -eu
out=$1
packages=$(cd "$(dirname "$0")/../.." && pwd)/build-package/packages
server=$(echo "$packages"/hearthd_*.deb)
client=$(echo "$packages"/hearth-cli_*.deb)
if [ ! -e "$server" ] || [ ! -e "$client" ]; then
    echo "image.sh: there are no packages in $packages; run ./dev package first" >&2
    exit 1
fi
if [ -e "$out" ]; then
    echo "image.sh: $out exists already" >&2
    exit 1
fi
version=$(dpkg-deb -f "$server" Version)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The tree. The database is elsewhere, so PostgreSQL, a recommendation, stays away; so does systemd.
mmdebstrap --variant=minbase --include=systemd-standalone-sysusers,ca-certificates --aptopt='APT::Install-Recommends "false"' \
    --customize-hook="copy-in $server $client /tmp" \
    --customize-hook="chroot \"\$1\" sh -ec 'apt-get install -qy /tmp/*.deb; rm /tmp/*.deb'" \
    --customize-hook="cp \"\$1/etc/passwd\" $work/passwd" \
    --dpkgopt='path-exclude=/usr/share/doc/hearth/*' bookworm "$work/tree.tar"
user=$(awk -F: '$1 == "hearth" {print $3 ":" $4}' "$work/passwd")

# The image. Users are numbers, so that Kubernetes can see that they are not root.
umoci init --layout "$out"
umoci new --image "$out:$version"
umoci raw add-layer --image "$out:$version" "$work/tree.tar"
umoci config --image "$out:$version" --config.user "$user" --config.entrypoint /usr/bin/hearthd \
    --config.env HEARTH_LISTEN=:4040 --config.env HEARTH_AUTH=token --config.exposedports 4040/tcp \
    --config.stopsignal SIGTERM --config.workingdir / --config.label org.opencontainers.image.version="$version"
umoci gc --layout "$out"
echo "$out: hearthd $version, user $user"
