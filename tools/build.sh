#!/bin/sh
# Builds the pinned tools of go.mod beside this file (or of the module named by the
# argument, such as tools/kustomize) into a cache directory keyed by what goes into
# them, once, and prints that directory. Progress goes to stderr.
set -eu
cd "${1:-$(dirname "$0")}"

module=$(go list -m)
key=$({ cat go.mod go.sum; go version; } | sha256sum | cut -c1-16)
cache=${HOSTWARRANT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hostwarrant}/tools/$(basename "$module")
bin=$cache/$key
if [ -d "$bin" ]; then
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
	echo "tools: building $(go list tool | sed 's|/v[0-9]*$||; s|.*/||' | tr '\n' ' ')into $bin (a few minutes, once)" >&2
	: >"$work/log"
	(
		exec 9>&-
		while sleep 20; do echo "tools: $(wc -l <"$work/log") packages compiled" >&2; done
	) >&2 &
	progress=$!
	CGO_ENABLED=0 go build -v -trimpath -buildvcs=false -ldflags '-s -w' -o "$work/bin/" tool 2>"$work/log" || {
		tail -n 20 "$work/log" >&2
		exit 1
	}
	mv "$work/bin" "$bin"
fi
echo "$bin"
