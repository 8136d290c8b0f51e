#!/bin/sh
# Builds the aggregated API server (the module beside this file) into a cache directory keyed by
# what goes into it, once, and prints that directory. Progress goes to stderr: a cold build takes
# minutes and must not look hung.
# With --print it builds nothing: it prints the directory, or fails when it is not built.
set -eu
cd "$(dirname "$0")"
# shellcheck source=hack/cached-build.sh
. ../../../hack/cached-build.sh
case "$#,${1-}" in
0,) print= ;;
1,--print) print=yes ;;
*)
	echo "usage: build.sh [--print]" >&2
	exit 2
	;;
esac

key=$({ cat go.mod go.sum ./*.go profile/*.go; go version; } | sha256sum | cut -c1-16)
bin=$cached_root/storage/$key
if [ "$print" ]; then
	[ -d "$bin" ] || {
		echo "storage: not built yet in $bin; build it with e2e/storage/server/build.sh" >&2
		exit 1
	}
	echo "$bin"
	exit 0
fi

# build is what cached_build calls. Without -trimpath, so that what the product uses as well is
# compiled once.
build() {
	GOWORK=off go build -v -buildvcs=false -ldflags '-s -w' -o "$work/bin/storage" . 2>>"$work/log"
}
cached_build storage "$bin" "an aggregated API server from source"
