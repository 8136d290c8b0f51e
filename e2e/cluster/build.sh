#!/bin/sh
# Builds the control plane (the tools of go.mod beside this file) from source modules
# into a cache directory keyed by what goes into it, once, and prints that directory.
# Progress goes to stderr: a cold build takes minutes and must not look hung.
# With --print it builds nothing: it prints the directory, or fails when it is not built.
# With --module DIR it builds the tools of the go.mod in that directory instead, with
# --kubelet the kubelet of the same module, which only tests with real nodes want.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=hack/cached-build.sh
. "$here/../../hack/cached-build.sh"
print='' title='control plane' cache=control-plane what='and etcd ' from=$here
tools() { go list tool | grep -v /kubelet$; }
case "$*" in
'') ;;
--print) print=yes ;;
--kubelet | '--kubelet --print')
	title=kubelet cache=kubelet what=''
	tools() { go list tool | grep /kubelet$; }
	[ "$#" = 1 ] || print=yes
	;;
'--module '*) from=$2 ;;
*)
	echo "usage: build.sh [--kubelet] [--print] | --module DIR" >&2
	exit 2
	;;
esac
cd "$from"

version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${version#v1.}
minor=${minor%%.*}
stamp=k8s.io/component-base/version
# Without the stamp nodes and server report v0.0.0-master+$Format:%H$.
ldflags="-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=$minor -X $stamp.gitTreeState=clean"

key=$({ cat go.mod go.sum; go version; echo "$ldflags"; } | sha256sum | cut -c1-16)
bin=$cached_root/$cache/$key
if [ "$print" ]; then
	[ -d "$bin" ] || {
		echo "$title: not built yet in $bin" >&2
		exit 1
	}
	echo "$bin"
	exit 0
fi

# build is what cached_build calls.
build() {
	for tool in $(tools); do
		name=${tool##*/}
		[ "$tool" != go.etcd.io/etcd/server/v3 ] || name=etcd
		CGO_ENABLED=0 go build -v -trimpath -buildvcs=false -ldflags "$ldflags" -o "$work/bin/$name" "$tool" 2>>"$work/log" || return 1
	done
}
cached_build "$title" "$bin" "Kubernetes $version ${what}from source"
