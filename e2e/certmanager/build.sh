#!/bin/sh
# Builds cert-manager's controllers (the module beside this file) into a cache directory keyed by
# what goes into them, once, with the CRDs of the same version beside the program, and prints that
# directory. Progress goes to stderr: a cold build takes minutes and must not look hung.
# With --print it builds nothing: it prints the directory, or fails when it is not built.
set -eu
cd "$(dirname "$0")"
# shellcheck source=hack/cached-build.sh
. ../../hack/cached-build.sh
case "$#,${1-}" in
0,) print= ;;
1,--print) print=yes ;;
*)
	echo "usage: build.sh [--print]" >&2
	exit 2
	;;
esac

key=$({ cat go.mod go.sum ./*.go; go version; } | sha256sum | cut -c1-16)
bin=$cached_root/certmanager/$key
if [ "$print" ]; then
	[ -d "$bin" ] || {
		echo "cert-manager: not built yet in $bin; build it with e2e/certmanager/build.sh" >&2
		exit 1
	}
	echo "$bin"
	exit 0
fi

module=github.com/cert-manager/cert-manager

# build is what cached_build calls. Without -trimpath, so that what the product uses as well is
# compiled once.
build() {
	GOWORK=off go build -v -buildvcs=false -ldflags '-s -w' -o "$work/bin/certmanager" . 2>>"$work/log" || return 1
	GOWORK=off go mod download $module || return 1 # the zip holds the CRDs
	mkdir "$work/bin/crds" || return 1
	cp "$(GOWORK=off go list -m -f '{{.Dir}}' $module)"/deploy/crds/*.yaml "$work/bin/crds/" || return 1
	chmod u+w "$work"/bin/crds/*
}
cached_build cert-manager "$bin" "$(GOWORK=off go list -m -f '{{.Version}}' $module) from source"
