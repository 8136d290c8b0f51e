#!/bin/sh
# Builds the pinned tools of go.mod beside this file (or of the module named by the
# argument, such as tools/kustomize) into a cache directory keyed by what goes into
# them, once, and prints that directory. Progress goes to stderr.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=hack/cached-build.sh
. "$root/hack/cached-build.sh"
cd "${1:-$root/tools}"

module=$(go list -m)
key=$({ cat go.mod go.sum; go version; } | sha256sum | cut -c1-16)

# build is what cached_build calls.
build() {
	CGO_ENABLED=0 go build -v -trimpath -buildvcs=false -ldflags '-s -w' -o "$work/bin/" tool 2>"$work/log"
}
cached_build tools "$cached_root/tools/$(basename "$module")/$key" "the tools of $module"
