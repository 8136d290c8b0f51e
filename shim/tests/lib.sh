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
	sed -E "s/(^| )$1=[0-9]+/\\1$1=$2/" "$SHIM" >shim.new
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

# --- warrants ---

NOW=1800000000
DAY=86400

# at TIME: what the host's clock says from now on. A stand-in for date, as the clock
# of the machine is not ours to set.
at() { # TIME
	printf '%s\n' "$1" >clock
	[ ! -e clock.sh ] || return 0
	printf '#!/bin/sh\ncat %s/clock\n' "$T" >clock.sh
	chmod 755 clock.sh
	mount --bind clock.sh "$(readlink -f /bin/date)"
}

# held provisions a host that requires warrants: alice and bob sign everything, carol
# only leave of tls-*, rita is revoked; cluster prod-1, class bm, floor 0 for all.
held() {
	at $NOW
	for who in alice bob rita; do
		printf 'install@*,join@*,leave@*,uninstall@*,kpssh namespaces="kpssh" %s\n' "$(cut -d ' ' -f 1,2 "$FIXTURES/$who.pub")"
	done >/etc/kpssh/allowed_signers
	printf 'leave@tls-* namespaces="kpssh" %s\n' "$(cut -d ' ' -f 1,2 "$FIXTURES/carol.pub")" >>/etc/kpssh/allowed_signers
	printf 'warrant=required\nclass=bm\nmax-validity=90d\nsigners-expire=%s\n' $((NOW + 200 * DAY)) >/etc/kpssh/shim.conf
	printf 'id prod-1\nendpoint https://10.0.0.5:6443\nca-sha256 %s\n' "$(printf 'a CA' | sha256sum | cut -d ' ' -f 1)" >/etc/kpssh/cluster
	printf '* 0\n' >/etc/kpssh/floors
	for who in root1 root2; do
		printf 'root namespaces="hostwarrant-statement" %s\n' "$(cut -d ' ' -f 1,2 "$FIXTURES/$who.pub")"
	done >/etc/kpssh/root_signers
	: >params
	warrant
}

# warrant [NAME=VALUE]… writes a script with a warrant, and signs it as alice. end=
# is the lines from target on, head= those before it, body= the script.
warrant() {
	profile=tls-a phase=join serial=42 before='' after=$((NOW + 30 * DAY)) head='' end='target any' body='echo ran' by=alice
	for setting; do
		case $setting in
		profile=* | phase=* | serial=* | before=* | after=* | head=* | end=* | body=* | by=*) eval "${setting%%=*}=\${setting#*=}" ;;
		*) fail "warrant $setting" ;;
		esac
	done
	{
		printf '%s\n' '#!/bin/bash' '#warrant: v1' "#warrant: profile $profile" "#warrant: phase $phase" "#warrant: serial $serial"
		[ -z "$before" ] || printf '#warrant: not-before %s\n' "$before"
		printf '#warrant: not-after %s\n' "$after"
		[ -z "$head" ] || printf '%s\n' "$head" | sed 's/^/#warrant: /'
		printf '%s\nend\n' "$end" | sed 's/^/#warrant: /'
		printf '%s\n' "$body"
	} >script
	# shellcheck disable=SC2086 # names of keys
	sign $by
}

# ran PHASE…, refused CODE TEXT PHASE…: sends the current script.
ran() {
	run "$@"
	answers 0
	grep -qx ran out || fail 'the script did not run'
}

refused() { # CODE TEXT PHASE [RUN-ID]
	want=$1 text=$2
	shift 2
	state >state.before
	run "$@"
	answers "$want" "$text"
	state >state.after
	cmp -s state.before state.after || fail 'a refusal changed the state of the host'
}

# state prints what the host remembers and trusts.
state() {
	(cd / && find var/lib/hostwarrant etc/kpssh -type f ! -name running ! -name lock -exec sha256sum {} + | sort)
}

mark() { # PROFILE LINES: its mark is exactly this
	printf '%s\n' "$2" | cmp -s - "/var/lib/hostwarrant/marks/$1" || fail "the mark of $1 is not: $2 but: $(cat "/var/lib/hostwarrant/marks/$1")"
}

digest() { # FILE
	sha256sum <"$1" | cut -d ' ' -f 1
}
