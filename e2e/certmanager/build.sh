#!/bin/sh
# Builds cert-manager's controllers (the module beside this file) into a cache directory keyed by
# what goes into them, once, with the CRDs of the same version beside the program, and prints that
# directory. Progress goes to stderr: a cold build takes minutes and must not look hung.
# With --print it builds nothing: it prints the directory, or fails when it is not built.
set -eu
cd "$(dirname "$0")"
case "$#,${1-}" in
0,) print= ;;
1,--print) print=yes ;;
*)
	echo "usage: build.sh [--print]" >&2
	exit 2
	;;
esac

key=$({ cat go.mod go.sum ./*.go; go version; } | sha256sum | cut -c1-16)
cache=${HOSTWARRANT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hostwarrant}/certmanager
bin=$cache/$key
if [ "$print" ]; then
	[ -d "$bin" ] || {
		echo "cert-manager: not built yet in $bin; build it with e2e/certmanager/build.sh" >&2
		exit 1
	}
	echo "$bin"
	exit 0
fi
mkdir -p "$cache"

exec 9>"$cache/lock"
flock 9 # two builds at once would only slow each other down
if [ ! -d "$bin" ]; then
	work=$(mktemp -d "$cache/build.XXXXXX")
	progress=
	finish() {
		[ -z "$progress" ] || kill "$progress" 2>/dev/null || :
		rm -rf "$work"
	}
	trap finish EXIT
	trap 'exit 130' INT TERM
	module=github.com/cert-manager/cert-manager
	echo "cert-manager: building $(GOWORK=off go list -m -f '{{.Version}}' $module) from source into $bin (a few minutes, once)" >&2
	: >"$work/log"
	(
		exec 9>&-
		while sleep 20; do
			echo "cert-manager: $(wc -l <"$work/log") packages compiled" >&2
		done
	) >&2 &
	progress=$!
	# Without -trimpath, so that what the product uses as well is compiled once.
	GOWORK=off go build -v -buildvcs=false -ldflags '-s -w' -o "$work/bin/certmanager" . 2>>"$work/log" || {
		tail -n 20 "$work/log" >&2
		exit 1
	}
	GOWORK=off go mod download $module # the zip holds the CRDs
	mkdir "$work/bin/crds"
	cp "$(GOWORK=off go list -m -f '{{.Dir}}' $module)"/deploy/crds/*.yaml "$work/bin/crds/"
	chmod u+w "$work"/bin/crds/*
	mv "$work/bin" "$bin"
fi
echo "$bin"
