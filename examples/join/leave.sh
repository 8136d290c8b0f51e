#!/usr/bin/env bash
# Ends what join started and removes what it wrote, kubelet's certificates among it, so that the host can join again,
# under this name or another. It cannot delete the Node object: a kubelet may not, not even its own. Pods are stopped
# at once; whoever wants them to go in peace drains the node first.
set -euo pipefail

with_systemd() { [ -d /run/systemd/system ]; }

# stop NAME: and wait for its end.
stop() {
	local pid=''
	if with_systemd; then
		systemctl disable --now "$1" 2>/dev/null || true
		rm -f "/etc/systemd/system/$1.service"
		systemctl daemon-reload
		return
	fi
	[ ! -s "/run/$1.pid" ] || read -r pid <"/run/$1.pid"
	if [ -n "$pid" ] && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$1" ]; then
		kill "$pid"
		while [ -e "/proc/$pid/exe" ]; do sleep 0.1; done
	fi
	rm -f "/run/$1.pid"
}

# stop_pods: kubelet and containerd leave them running when they end.
stop_pods() {
	local id
	for id in $(ctr -n k8s.io tasks list -q 2>/dev/null || true); do
		ctr -n k8s.io tasks delete --force "$id" >/dev/null
	done
	for id in $(ctr -n k8s.io containers list -q 2>/dev/null || true); do
		ctr -n k8s.io containers delete "$id"
	done
}

# unmount_below DIRECTORY: volumes of pods.
unmount_below() {
	local at
	while read -r _ _ _ _ at _; do
		case $at in "$1"/*) umount "$at" ;; esac
	done < <(tac /proc/self/mountinfo)
}

stop kubelet
stop_pods
stop containerd
unmount_below /var/lib/kubelet
rm -rf /etc/kubernetes/bootstrap-kubelet.conf /etc/kubernetes/kubelet.conf /etc/kubernetes/pki/ca.crt \
	/etc/containerd/config.toml /etc/containerd/cni.template /etc/cni/net.d/10-containerd-net.conflist
find /var/lib/kubelet -mindepth 1 -delete
echo "$(hostname) has left"
