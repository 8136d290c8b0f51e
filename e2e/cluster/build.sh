#!/bin/sh
# Builds the control plane (the tools of go.mod beside this file) from source modules
# into a cache directory keyed by what goes into it, once, and prints that directory.
# Progress goes to stderr: a cold build takes minutes and must not look hung.
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

version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${version#v1.}
minor=${minor%%.*}
stamp=k8s.io/component-base/version
# Without the stamp nodes and server report v0.0.0-master+$Format:%H$.
ldflags="-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=$minor -X $stamp.gitTreeState=clean"

key=$({ cat go.mod go.sum; go version; echo "$ldflags"; } | sha256sum | cut -c1-16)
cache=${HOSTWARRANT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hostwarrant}/control-plane
bin=$cache/$key
if [ "$print" ]; then
	[ -d "$bin" ] || {
		echo "control plane: not built yet in $bin" >&2
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
	echo "control plane: building Kubernetes $version and etcd from source into $bin (about 5 minutes, once)" >&2
	: >"$work/log"
	(
		exec 9>&-
		while sleep 20; do
			echo "control plane: $(wc -l <"$work/log") packages compiled" >&2
		done
	) >&2 &
	progress=$!
	for tool in $(go list tool); do
		name=${tool##*/}
		[ "$tool" != go.etcd.io/etcd/server/v3 ] || name=etcd
		CGO_ENABLED=0 go build -v -trimpath -buildvcs=false -ldflags "$ldflags" -o "$work/bin/$name" "$tool" 2>>"$work/log" || {
			tail -n 20 "$work/log" >&2
			exit 1
		}
	done
	mv "$work/bin" "$bin"
fi
echo "$bin"
