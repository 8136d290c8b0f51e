#!/usr/bin/env bash
# Looks whether all that join starts is on the host. It comes with the host's image, or from packages that are
# installed before: on Debian containerd, runc, containernetworking-plugins and openssl; kubelet in /usr/local/bin.
set -euo pipefail

missing=()
for program in containerd ctr runc openssl /usr/local/bin/kubelet /usr/lib/cni/bridge /usr/lib/cni/host-local /usr/lib/cni/portmap; do
	command -v "$program" >/dev/null || missing+=("$program")
done
if [ "${#missing[@]}" -gt 0 ]; then
	echo "missing on $(hostname): ${missing[*]}; put it into the host's image (Debian: apt-get install containerd runc containernetworking-plugins openssl)" >&2
	exit 1
fi
/usr/local/bin/kubelet --version
containerd --version
