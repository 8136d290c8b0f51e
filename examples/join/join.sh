#!/usr/bin/env bash
# Makes this host the node KPSSH_NODE_NAME: writes the configuration of containerd, CNI and kubelet, starts both, and
# waits until kubelet has the client certificate for which it asks with the bootstrap token. Run again on a host that
# is that node, it writes and starts the same and asks for nothing.
set -euo pipefail

kubelet_dir=/var/lib/kubelet
certificate=$kubelet_dir/pki/kubelet-client-current.pem
bootstrap=/etc/kubernetes/bootstrap-kubelet.conf

# node_name prints the name in the certificate that kubelet has, if that is good for another minute.
node_name() {
	[ -s "$certificate" ] && openssl x509 -in "$certificate" -noout -checkend 60 >/dev/null || return 0
	openssl x509 -in "$certificate" -noout -subject -nameopt multiline | sed -n 's/^ *commonName *= system:node://p'
}

with_systemd() { [ -d /run/systemd/system ]; }

# start NAME COMMAND...: by systemd, which starts it at boot as well, or without, until the host goes down. Either way
# not with the environment of this script, which holds the token.
start() {
	local name=$1 pid
	shift
	if with_systemd; then
		printf '[Unit]\nDescription=%s of this node\nAfter=network-online.target\n[Service]\nExecStart=%s\nRestart=always\nRestartSec=2\nDelegate=yes\nKillMode=process\n[Install]\nWantedBy=multi-user.target\n' \
			"$name" "$*" >"/etc/systemd/system/$name.service"
		systemctl daemon-reload
		systemctl enable "$name"
		systemctl restart "$name"
		return
	fi
	stop "$name"
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin setsid "$@" >>"/var/log/$name.log" 2>&1 </dev/null &
	pid=$!
	echo "$pid" >"/run/$name.pid"
}

# stop NAME: what start left behind, if it did.
stop() {
	local pid=''
	if with_systemd; then
		systemctl stop "$1" 2>/dev/null || true
		return
	fi
	[ ! -s "/run/$1.pid" ] || read -r pid <"/run/$1.pid"
	[ -n "$pid" ] && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$1" ] || return 0
	kill "$pid" 2>/dev/null || return 0 # it ended by itself just now
	while [ -e "/proc/$pid/exe" ]; do sleep 0.1; done
}

# runs NAME tells whether it does.
runs() {
	if with_systemd; then
		systemctl is-active --quiet "$1"
		return
	fi
	[ -e "/proc/$(cat "/run/$1.pid")/exe" ]
}

# await TENTHS NAME COMMAND...: until the command succeeds, as long as the program runs.
await() {
	local left=$1 name=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		left=$((left - 1))
		if [ "$left" -le 0 ] || ! runs "$name"; then
			echo "$name did not get there: $*" >&2
			if with_systemd; then journalctl -u "$name" -n 20 --no-pager >&2; else tail -n 20 "/var/log/$name.log" >&2; fi
			exit 1
		fi
		sleep 0.1
	done
}

# clean_up: whatever ends this script, neither token nor a kubelet that has no certificate stays behind.
clean_up() {
	rm -f "$bootstrap"
	has_certificate || stop kubelet
}

has_certificate() { [ "$(node_name)" = "$KPSSH_NODE_NAME" ] && [ -s /etc/kubernetes/kubelet.conf ]; }

write_containerd_config() {
	mkdir -p /etc/containerd /etc/cni/net.d
	# The range of this node's pods is known when the node is, so containerd fills it in. Two opening braces may not
	# stand together in a signed script.
	printf '{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "%s.PodCIDR}}"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}\n' '{''{' >/etc/containerd/cni.template
	cat >/etc/containerd/config.toml <<-END
		version = 2
		[plugins."io.containerd.grpc.v1.cri"]
		  restrict_oom_score_adj = true
		  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
		    runtime_type = "io.containerd.runc.v2"
		    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
		      SystemdCgroup = $(with_systemd && echo true || echo false)
		  [plugins."io.containerd.grpc.v1.cri".cni]
		    bin_dir = "/usr/lib/cni"
		    conf_dir = "/etc/cni/net.d"
		    conf_template = "/etc/containerd/cni.template"
	END
}

# write_kubelet_config ROTATE
write_kubelet_config() {
	cat >"$kubelet_dir/config.yaml" <<-END
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}}
		authorization: {mode: Webhook}
		cgroupDriver: $(with_systemd && echo systemd || echo cgroupfs)
		containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
		failCgroupV1: false
		failSwapOn: false
		providerID: "$KPSSH_PROVIDER_ID"
		resolvConf: ""
		rotateCertificates: $1
	END
}

# The token is good for this host and this name only, and still a secret.
write_bootstrap_config() {
	install -m 600 /dev/null "$bootstrap"
	cat >"$bootstrap" <<-END
		apiVersion: v1
		kind: Config
		clusters: [{name: cluster, cluster: {server: "$KPSSH_CLUSTER_ENDPOINT", certificate-authority: /etc/kubernetes/pki/ca.crt}}]
		users: [{name: token, user: {token: "$KPSSH_BOOTSTRAP_TOKEN"}}]
		contexts: [{name: bootstrap, context: {cluster: cluster, user: token}}]
		current-context: bootstrap
	END
}

start_kubelet() {
	start kubelet /usr/local/bin/kubelet "--config=$kubelet_dir/config.yaml" "--bootstrap-kubeconfig=$bootstrap" \
		--kubeconfig=/etc/kubernetes/kubelet.conf "--cert-dir=$kubelet_dir/pki" "--hostname-override=$KPSSH_NODE_NAME" \
		"--node-ip=$KPSSH_NODE_ADDRESS" "--node-labels=${KPSSH_VAR_nodeLabels:-}"
}

current=$(node_name)
if [ -n "$current" ] && [ "$current" != "$KPSSH_NODE_NAME" ]; then
	echo "this host is the node $current; run leave first" >&2
	exit 1
fi

mkdir -p /etc/kubernetes/pki "$kubelet_dir"
base64 -d <<<"$KPSSH_CLUSTER_CA_B64" >/etc/kubernetes/pki/ca.crt
write_containerd_config
runs containerd 2>/dev/null || start containerd /usr/bin/containerd
await 600 containerd ctr version

if ! has_certificate; then
	# The key of an earlier try has a request already, with a token that is over, and maybe denied: kubelet would go on
	# waiting for that one. So it gets a new key with each token.
	stop kubelet
	rm -f /etc/kubernetes/kubelet.conf "$certificate" "$kubelet_dir/pki/kubelet-client.key.tmp"
	trap clean_up EXIT
	# While it rotates certificates kubelet holds the key of a request in its memory alone, and the host could not prove
	# that the request is its own. So it asks for its first one without, with the key in kubelet-client.key.tmp.
	write_bootstrap_config
	write_kubelet_config false
	start_kubelet
	await 2000 kubelet has_certificate
	rm -f "$bootstrap"
fi
write_kubelet_config true
start_kubelet
echo "$(hostname) is the node $KPSSH_NODE_NAME"
