# Sourced by enter: a provisioned host, envelopes, and what a case asserts.
# The last answer of the shim is in $T/out, $T/err and $code.

SHIM=/opt/kpssh/kpssh-shim
ID=0123456789abcdef0123456789abcdef
LF='
'

fail() { # SENTENCE
	printf 'FAIL: %s\n' "$1"
	printf 'code %s, stdout:\n' "${code-}"
	head -c 2000 "$T/out" 2>/dev/null
	printf 'stderr:\n'
	head -c 2000 "$T/err" 2>/dev/null
	exit 1
}

# provision sets up a host that trusts alice and bob, has revoked rita, and runs
# scripts without a warrant.
provision() {
	mkdir -p /opt/kpssh /etc/kpssh
	install -m 0755 "$tests/../kpssh-shim" "$SHIM"
	mkdir -m 0700 /var/lib/hostwarrant
	for who in alice bob rita; do
		printf 'kpssh %s\n' "$(cat "$FIXTURES/$who.pub")"
	done >/etc/kpssh/allowed_signers
	cp "$FIXTURES/rita.pub" /etc/kpssh/revoked_keys
	printf 'warrant=optional\n' >/etc/kpssh/shim.conf
	printf 'KPSSH_NODE_NAME=node-1\n' >params
	script <<-'S'
		#!/usr/bin/env bash
		echo "joined $KPSSH_NODE_NAME"
	S
	sign alice
}

# set_constant NAME VALUE changes a limit in the namespace's copy of the shim.
set_constant() {
	sed "s/^$1=.*/$1=$2/" "$SHIM" >shim.new
	! cmp -s shim.new "$SHIM" || fail "the shim has no constant $1"
	cat shim.new >"$SHIM"
}

script() { # the script on stdin
	cat >script
}

sign() { # KEY… : one block each
	: >sig
	for key; do
		ssh-keygen -Y sign -q -n "${NAMESPACE:-kpssh}" -f "$FIXTURES/$key" <script >>sig 2>/dev/null
	done
}

b64() { # FILE
	base64 -w 0 "$1"
}

# envelope PHASE [RUN-ID] prints what a controller sends.
envelope() {
	printf 'kpssh-envelope: 1\nphase: %s\n' "$1"
	[ -z "${2-}" ] || printf 'run-id: %s\n' "$2"
	printf 'params-b64: %s\nsig-b64: %s\nscript-b64: %s\n' "$(b64 params)" "$(b64 sig)" "$(b64 script)"
}

# shim runs the shim on stdin's envelope.
shim() {
	code=0
	"$SHIM" >out 2>err || code=$?
}

answers() { # CODE [TEXT on stderr]
	[ "$code" -eq "$1" ] || fail "the shim answered $code, not $1"
	case $1 in
	0 | 10 | 11) return 0 ;;
	esac
	grep -qF -e "${2:-kpssh-shim: }" err || fail "stderr does not say: ${2:-kpssh-shim: }"
	[ -n "${RAN_BEFORE-}" ] || [ ! -s out ] || fail 'a refusal printed something on stdout'
}

join() { # [RUN-ID]
	envelope join "$@" | shim_of
}

# shim_of keeps $code out of a pipeline's subshell.
shim_of() {
	cat >envelope
	shim <envelope
	printf %s "$code" >code
}

# run PHASE [RUN-ID]: sends the envelope of the current script.
run() {
	envelope "$@" >envelope
	shim <envelope
}

says() { # TEXT on stdout, exactly
	printf '%s\n' "$1" | cmp -s - out || fail "stdout is not: $1"
}

contains() { # FILE TEXT
	grep -qF -e "$2" "$1" || fail "$1 does not hold: $2"
}

# until_true COMMAND…: waits up to 20 s for a condition.
until_true() {
	tries=0
	while ! "$@"; do
		tries=$((tries + 1))
		[ "$tries" -lt 400 ] || fail "still not true after 20 s: $*"
		sleep 0.05
	done
}
