# What a warrant says is what happens: codes 2, 3, 14 to 22.

test_a_warranted_script_runs_and_leaves_a_mark() {
	held
	ran join
	mark tls-a "serial 42${LF}join $(digest script)"
	[ "$(cat /var/lib/hostwarrant/installed/profile)" = tls-a ] || fail 'the profile is not remembered'
	state >before
	ran join
	state >after
	cmp -s before after || fail 'the same script again changed something'
}

test_a_script_without_a_warrant_is_14_where_one_is_required() {
	held
	script <<-'S'
		echo ran
	S
	sign alice
	refused 14 'it has no warrant' join
	sed -i s/required/optional/ /etc/kpssh/shim.conf
	ran join
	at $((NOW + 201 * DAY))
	refused 18 'list of signers ended' join
}

test_a_warrant_is_held_to_in_optional_mode() {
	held
	printf 'warrant=optional\n' >/etc/kpssh/shim.conf
	ran join
	warrant end='target class bm'
	refused 15 'another cluster, class or host' join
}

test_signers_are_held_to_their_scope() {
	held
	warrant phase=leave after=never by=carol
	ran leave
	warrant phase=leave after=never by=carol profile=web-a
	refused 2 '0 of the 1' leave
	warrant by=carol
	refused 2 '0 of the 1' join
	warrant by=rita
	refused 13 revoked join
}

test_thresholds_hold_for_warranted_scripts() {
	held
	printf 'threshold-join=2\n' >>/etc/kpssh/shim.conf
	refused 2 '1 of the 2' join
	warrant by='alice alice'
	refused 2 '1 of the 2' join
	warrant by='alice bob'
	ran join
}

test_a_signature_fault_comes_before_a_fault_of_the_warrant() {
	held
	warrant after=$((NOW - 1)) end='target class other' by=mallory
	refused 2 '0 of the 1' join
}

test_a_script_of_another_phase_is_16() {
	held
	refused 16 'for phase join, not leave' leave
	refused 16 'for phase join, not install' install
	ran join
}

test_targets() {
	held
	ssh-keygen -q -t ed25519 -N '' -f host
	install -m 600 host /etc/ssh/ssh_host_ed25519_key
	cp host.pub /etc/ssh/ssh_host_ed25519_key.pub
	print=$(ssh-keygen -lf host.pub | cut -d ' ' -f 2)
	other=$(ssh-keygen -lf "$FIXTURES/bob.pub" | cut -d ' ' -f 2)
	serial=42
	while read -r verdict lines; do
		serial=$((serial + 1))
		warrant serial=$serial end="$(printf %s "$lines" | tr '|' '\n' | sed 's/^/target /')"
		case $verdict in
		yes) ran join ;;
		*) refused 15 'another cluster, class or host' join ;;
		esac
	done <<-L
		yes any
		yes class bm
		no class bm2
		no class b
		yes class other|class bm
		yes host $print
		no host $other
		yes host $other|host $print
		yes cluster prod-1
		no cluster prod-2
		yes cluster prod-2|cluster prod-1
		yes class bm|host $print|cluster prod-1
		no class bm|host $print|cluster prod-2
		no class other|host $print|cluster prod-1
		no class bm|host $other|cluster prod-1
		no class any
	L
	rm /etc/kpssh/cluster
	warrant serial=100 end='target cluster prod-1'
	refused 15 'another cluster, class or host' join
}

test_a_cluster_file_is_read_strictly() {
	held
	sum=$(printf 'a CA' | sha256sum | cut -d ' ' -f 1)
	while read -r lines; do
		printf %s "$lines" | tr '|' '\n' >/etc/kpssh/cluster
		refused 23 /etc/kpssh/cluster join
	done <<-L
		id prod-1|endpoint https://a
		id prod-1|ca-sha256 $sum
		endpoint https://a|ca-sha256 $sum
		id prod-1|id prod-2|endpoint https://a|ca-sha256 $sum
		id prod-1|endpoint https://a b|ca-sha256 $sum
		id prod-1|endpoint https://a|ca-sha256
		id prod-1|endpoints https://a|ca-sha256 $sum
		x
	L
	printf '# a comment\n\nid prod-1\nendpoint https://a\nca-sha256 %s' "$sum" >/etc/kpssh/cluster
	ran join
	chmod 666 /etc/kpssh/cluster
	refused 23 'not a file that root alone may write' join
}

test_time() {
	held
	warrant before=$((NOW + 1))
	refused 17 "it is for $((NOW + 1))" join
	at $((NOW + 1))
	ran join
	[ "$(cat /var/lib/hostwarrant/time-floor)" = $((NOW + 1)) ] || fail 'the floor did not rise to not-before'
	at $((NOW + 30 * DAY))
	refused 18 'warrant: it ended' join
	at $((NOW + 30 * DAY - 1))
	ran join
	warrant serial=43 after=$((NOW + 120 * DAY))
	refused 18 'more than 90 days ahead' join
	at $((NOW + 30 * DAY))
	ran join
	at $((NOW + 200 * DAY))
	warrant serial=44 after=$((NOW + 210 * DAY))
	refused 18 'list of signers ended' join
	at $((NOW + 200 * DAY - 1))
	ran join
}

test_a_clock_that_was_set_back_revives_nothing() {
	held
	warrant before=$NOW after=$((NOW + DAY))
	ran join
	warrant serial=43 before=$((NOW + 2 * DAY)) after=$((NOW + 3 * DAY))
	at $((NOW + 2 * DAY))
	ran join
	warrant serial=44 after=$((NOW + DAY))
	at 100
	refused 18 "here it is $((NOW + 2 * DAY))" join
	# a clock that was reset: a signed time ahead of the floor sets it right
	warrant serial=44 before=$((NOW + 60 * DAY)) after=$((NOW + 61 * DAY))
	ran join
	[ "$(cat /var/lib/hostwarrant/time-floor)" = $((NOW + 60 * DAY)) ] || fail 'the floor did not rise'
	warrant serial=45 before=$((NOW + 151 * DAY)) after=$((NOW + 152 * DAY))
	refused 17 'it is for' join
	at 4070908800
	warrant serial=45 after=$((NOW + 70 * DAY))
	refused 18 'here it is 4070908800' join
	at $((NOW + 60 * DAY))
	ran join
}

test_a_floor_of_time_that_is_gone_or_torn_is_22() {
	held
	ran join
	[ -s /var/lib/hostwarrant/time-floor ] || fail 'no floor'
	for text in '\n' 'x\n' '01\n' '1 2\n' '1000000000000000\n' 1 '1\n2\n' '1\0000\n'; do
		# shellcheck disable=SC2059 # a format
		printf "$text" >/var/lib/hostwarrant/time-floor
		refused 22 time-floor join
	done
	printf '1\n' >/var/lib/hostwarrant/time-floor
	chmod 666 /var/lib/hostwarrant/time-floor
	refused 22 time-floor join
	rm /var/lib/hostwarrant/time-floor
	refused 22 'time-floor is missing' join
}

test_serials_only_rise() {
	held
	ran join
	warrant serial=41
	refused 20 'serial 41 of tls-a is below' join
	warrant serial=42 body='echo other'
	refused 21 'another join script' join
	warrant serial=42 phase=install
	ran install
	warrant serial=42 phase=install body='echo other'
	refused 21 'another install script' install
	warrant serial=1043
	refused 20 'above 1042' join
	warrant serial=1042
	ran join
	mark tls-a "serial 1042${LF}join $(digest script)"
	printf 'max-serial-step=1\n' >>/etc/kpssh/shim.conf
	warrant serial=1044
	refused 20 'above 1043' join
	warrant profile=tls-b serial=1
	ran join
}

test_the_first_serial_is_measured_from_a_floor_that_names_the_profile() {
	held
	warrant serial=1000001
	refused 20 'above 1000000' join
	warrant serial=1000000
	ran join
	printf '* 0\ntls-b 50\n' >/etc/kpssh/floors
	warrant profile=tls-b serial=1051
	refused 20 'above 1050' join
	warrant profile=tls-b serial=49
	refused 20 'below' join
	warrant profile=tls-b serial=1050
	ran join
}

test_floors() {
	held
	ran join
	printf 'tls-* 43\n' >/etc/kpssh/floors
	refused 20 'floor (43)' join
	warrant serial=43
	ran join
	printf 'web-* 43\n' >/etc/kpssh/floors
	warrant profile=tls-c
	refused 22 'no mark and no floor for tls-c' join
	rm /etc/kpssh/floors
	refused 22 'no mark and no floor for tls-c' join
	for line in 'tls-* 1 2' 'tls-*' 'tls-*x 1' 'TLS 1' '*a 1' 'tls-a 01' 'tls-a x'; do
		printf '%s\n' "$line" >/etc/kpssh/floors
		refused 23 /etc/kpssh/floors join
	done
	printf '# all\n\ntls-c 1\ntls-* 0' >/etc/kpssh/floors
	ran join
}

test_a_mark_that_is_gone_torn_or_not_roots_is_22() {
	held
	printf 'web-* 0\n' >/etc/kpssh/floors
	refused 22 'no mark and no floor' join
	printf '* 0\n' >/etc/kpssh/floors
	ran join
	good=$(digest script)
	while read -r lines; do
		printf %s "$lines" | tr '|' '\n' >/var/lib/hostwarrant/marks/tls-a
		refused 22 'not a mark' join
	done <<-L

		|
		serial
		serial 042|
		serial x|join $good|
		join $good|serial 42|
		serial 42|serial 41|
		serial 42|join ${good}0|
		serial 42|join $good x|
		serial 42|join $good|join $good|
		serial 42|leap $good|
		serial 42||join $good|
	L
	printf 'serial 42\njoin %s\n' "$good" >/var/lib/hostwarrant/marks/tls-a
	ran join
	for cut in 1 5 65; do
		printf 'serial 42\njoin %s\n' "$good" | head -c "-$cut" >/var/lib/hostwarrant/marks/tls-a
		refused 22 'not a mark' join
	done
	printf 'serial 4\0002\njoin %s\n' "$good" >/var/lib/hostwarrant/marks/tls-a
	refused 22 'not a mark' join
	printf 'serial 42\njoin %s\n' "$good" >/var/lib/hostwarrant/marks/tls-a
	chown 1 /var/lib/hostwarrant/marks/tls-a
	refused 22 'not a mark' join
	rm /var/lib/hostwarrant/marks/tls-a
	ln -s nowhere /var/lib/hostwarrant/marks/tls-a
	refused 22 'not a mark' join
	rm /var/lib/hostwarrant/marks/tls-a
	mkdir /var/lib/hostwarrant/marks/tls-a
	refused 22 'not a mark' join
}

# vouched joins with a join script that vouches for the leave script in $1.
vouched() {
	warrant head="leave-sha256 $(digest "$1")" "${2-serial=42}"
	ran join
}

test_a_leave_script_that_join_vouched_for_always_runs() {
	held
	warrant phase=leave after=$((NOW + DAY)) body='echo ran'
	cp script leave
	vouched leave
	at $((NOW + 300 * DAY))
	cp leave script
	sign alice
	ran leave
	warrant phase=leave after=never body='echo other'
	refused 18 'list of signers ended' leave
	warrant phase=leave after=never serial=43
	refused 18 'list of signers ended' leave
	at $NOW
	warrant phase=leave after=never body='echo other'
	refused 21 'another leave script' leave
	warrant phase=leave after=$NOW serial=43
	refused 18 'warrant: it ended' leave
	warrant phase=leave after=never serial=43
	ran leave
}

test_the_kept_leave_script_runs_when_none_is_sent() {
	held
	: >empty
	warrant phase=leave after=$((NOW + DAY)) body='echo ran'
	cp script leave
	vouched leave
	: >script
	: >sig
	refused 22 'no leave script is kept' leave
	cp leave script
	sign alice
	ran leave
	cat sig script | cmp -s - /var/lib/hostwarrant/installed/tls-a.leave || fail 'no copy'
	warrant serial=43
	ran join
	: >script
	: >sig
	at $((NOW + 300 * DAY))
	ran leave
	mark tls-a "serial 43$LF$(tail -n +2 /var/lib/hostwarrant/marks/tls-a)"
	refused 4 'script is empty' join
	refused 22 'no uninstall script is kept' uninstall
	cat "$FIXTURES/alice.pub" >>/etc/kpssh/revoked_keys
	refused 13 revoked leave
}

# --- parameters ---

param() { # NAME=VALUE…
	for line; do printf '%s\n' "$line"; done >params
}

test_only_declared_parameters_are_taken() {
	held
	param KPSSH_NODE_NAME=node-1 KPSSH_BOOTSTRAP_TOKEN=a.b KPSSH_PROVIDER_ID=kpssh://x KPSSH_NODE_LABELS=a=b,c.io/d=e KPSSH_TAINTS=karpenter.sh/unregistered:NoExecute,a=b:NoSchedule \
		KPSSH_HOST_ADDRESS=10.0.0.1 KPSSH_NODE_ADDRESS=fd00::1 KPSSH_CLUSTER_ENDPOINT=https://10.0.0.5:6443 "KPSSH_CLUSTER_CA_B64=$(printf 'a CA' | base64 -w 0)"
	ran join
	param KPSSH_NODE_NAME= KPSSH_BOOTSTRAP_TOKEN= KPSSH_CLUSTER_ENDPOINT= KPSSH_CLUSTER_CA_B64=
	ran join
	for line in KPSSH_VAR_x=1 KPSSH_VAR_x= KPSSH_NODE_NAMES=a; do
		param "$line"
		refused 3 "does not declare ${line%%=*}" join
	done
	for line in KPSSH_NODE_NAME=Node "KPSSH_NODE_LABELS=a=b," KPSSH_TAINTS=a=b KPSSH_HOST_ADDRESS=10.0.0.1/8 KPSSH_CLUSTER_ENDPOINT=ftp://x KPSSH_CLUSTER_CA_B64=aGk; do
		param "$line"
		refused 3 "the value of ${line%%=*}" join
	done
}

test_names_and_values_of_labels_have_63_bytes() {
	held
	long=$(printf '%063d' 0)
	param "KPSSH_NODE_LABELS=$long.a.$long.b.$long/$long=$long,a=" "KPSSH_TAINTS=$long.a/$long=$long:NoExecute,$long:NoSchedule"
	ran join
	for line in "KPSSH_NODE_LABELS=a=b,${long}0=b" "KPSSH_NODE_LABELS=a/${long}0=b" "KPSSH_NODE_LABELS=a=${long}0" "KPSSH_TAINTS=${long}0:NoExecute" "KPSSH_TAINTS=a/b=${long}0:NoExecute"; do
		param "$line"
		refused 3 "the value of ${line%%=*}" join
	done
}

test_classes_and_clusters_have_63_bytes() {
	held
	long=$(printf '%063d' 0)
	for kind in class cluster; do
		warrant end="target $kind $long"
		refused 15 'another cluster, class or host' join
		warrant end="target $kind ${long}0"
		refused 14 'more than 63 characters' join
	done
}

test_values_are_as_declared() {
	held
	sum=$(printf 's e' | sha256sum | cut -d ' ' -f 1)
	warrant end="target any${LF}param KPSSH_VAR_E required enum a b${LF}param KPSSH_VAR_H optional secret sha256 $sum${LF}param KPSSH_VAR_R optional re [a-z]{2,3}[.]x.${LF}param KPSSH_VAR_I optional secret type int"
	param KPSSH_VAR_E=a 'KPSSH_VAR_H=s e' KPSSH_VAR_R=ab.xy KPSSH_VAR_I=-5
	ran join
	while read -r verdict line; do
		param KPSSH_VAR_E=b "$line"
		case $verdict in
		yes) ran join ;;
		*) refused 3 "the value of ${line%%=*}" join ;;
		esac
	done <<-'L'
		yes KPSSH_VAR_H=
		no KPSSH_VAR_H=s  e
		yes KPSSH_VAR_R=abc.x!
		no KPSSH_VAR_R=abcd.x!
		no KPSSH_VAR_R=aab.x!y
		no KPSSH_VAR_R=abxx!
		no KPSSH_VAR_R=ab.xé
		yes KPSSH_VAR_I=0
		no KPSSH_VAR_I=01
		no KPSSH_VAR_I=1 1
	L
	for value in c 'a b' A; do
		param "KPSSH_VAR_E=$value"
		refused 3 'the value of KPSSH_VAR_E' join
	done
	param KPSSH_VAR_I=1
	refused 3 'KPSSH_VAR_E is required' join
	param KPSSH_VAR_E=
	refused 3 'KPSSH_VAR_E is required' join
}

test_endpoint_and_ca_are_pinned() {
	held
	ca=$(printf 'a CA' | base64 -w 0) foreign=$(printf 'a foreign CA' | base64 -w 0)
	param "KPSSH_CLUSTER_CA_B64=$ca"
	ran join
	for line in KPSSH_CLUSTER_ENDPOINT=https://10.0.0.6:6443 KPSSH_CLUSTER_ENDPOINT=https://10.0.0.5:6443/ "KPSSH_CLUSTER_CA_B64=$foreign"; do
		param "$line"
		refused 3 "${line%%=*} is none of those" join
	done
	# the warrant cannot widen what the host pins
	warrant serial=43 end="target any${LF}param KPSSH_CLUSTER_ENDPOINT optional enum https://10.0.0.6:6443 https://10.0.0.5:6443"
	param KPSSH_CLUSTER_ENDPOINT=https://10.0.0.6:6443
	refused 3 'KPSSH_CLUSTER_ENDPOINT is none of those' join
	param KPSSH_CLUSTER_ENDPOINT=https://10.0.0.5:6443
	ran join
	rm /etc/kpssh/cluster
	ran join
	param "KPSSH_CLUSTER_CA_B64=$ca"
	refused 3 'KPSSH_CLUSTER_CA_B64 is pinned neither' join
	warrant serial=44 end="target any${LF}param KPSSH_CLUSTER_CA_B64 optional sha256 $(printf %s "$ca" | sha256sum | cut -d ' ' -f 1)"
	ran join
	warrant serial=45 end="target any${LF}param KPSSH_CLUSTER_CA_B64 optional enum aGk aGk="
	param KPSSH_CLUSTER_CA_B64=aGk
	refused 3 'not base64' join
	# a host that leaves goes to no cluster
	warrant serial=45 phase=leave
	param KPSSH_CLUSTER_ENDPOINT=https://elsewhere
	ran leave
}

test_a_known_run_is_answered_from_its_record_whatever_ran_since() {
	held
	ran join $ID
	warrant serial=43
	ran join
	warrant serial=42
	run join $ID
	RAN_BEFORE=1 answers 0
	grep -q "^kpssh-outcome: v1 run-id=$ID state=ended phase=join code=0 " out || fail 'not the outcome'
}

test_the_time_limit_is_the_warrants() {
	held
	set_constant GRACE_SECONDS 1
	warrant end="target any${LF}timeout 1" body='sleep 30'
	run join
	answers 11
	contains err 'script stopped after its 1 s'
}

# --- proof ---

test_prove_says_what_this_host_is_by_its_host_key() {
	held
	ssh-keygen -q -t ed25519 -N '' -f host
	install -m 600 host /etc/ssh/ssh_host_ed25519_key
	cp host.pub /etc/ssh/ssh_host_ed25519_key.pub
	openssl ecparam -name prime256v1 -genkey -noout >kubelet.key 2>/dev/null
	chmod 600 kubelet.key
	printf 'kubelet-key=%s/kubelet.key\n' "$T" >>/etc/kpssh/shim.conf
	ran join
	nonce=$(printf x | sha256sum | cut -d ' ' -f 1) uid=01234567-89ab-cdef-0123-456789abcdef
	param "KPSSH_NONCE=$nonce" "KPSSH_RUN_UID=$uid"
	prove() {
		printf 'kpssh-envelope: 1\nphase: prove\nparams-b64: %s\n' "$(b64 params)" >envelope
		shim <envelope
	}
	prove
	answers 0
	sed '/^-----BEGIN/,$d' out >proof
	sed -n '/^-----BEGIN/,$p' out >proof.sig
	printf 'host %s\n' "$(cat host.pub)" >hosts
	ssh-keygen -Y verify -f hosts -I host -n hostwarrant-proof -s proof.sig <proof >/dev/null || fail 'the proof does not verify'
	print=$(ssh-keygen -yf kubelet.key | ssh-keygen -lf - | cut -d ' ' -f 2)
	printf '%s\n' 'hostwarrant-proof: v1' 'cluster prod-1' "run-uid $uid" "nonce $nonce" 'mark tls-a 42' \
		"boot-id $(cat /proc/sys/kernel/random/boot_id)" "time $NOW" "kubelet-key $print" end | cmp -s - proof || fail "not the facts: $(cat proof)"
	rm kubelet.key
	prove
	contains out 'kubelet-key none'
	ssh-keygen -q -t ed25519 -N '' -f ca
	ssh-keygen -q -s ca -h -I host -n host /etc/ssh/ssh_host_ed25519_key.pub
	prove
	answers 0
	sed '/^-----BEGIN/,$d' out >proof
	sed -n '/^-----BEGIN/,$p' out >proof.sig
	# ssh-keygen finds certificates of hosts not authorized to sign, so it is asked for the signature alone
	ssh-keygen -Y check-novalidate -n hostwarrant-proof -s proof.sig <proof >named || fail 'the proof does not verify'
	contains named 'with ED25519-CERT key'
	for lines in "KPSSH_NONCE=$nonce" "KPSSH_NONCE=${nonce}0 KPSSH_RUN_UID=$uid" "KPSSH_NONCE=$nonce KPSSH_RUN_UID=x" "KPSSH_NONCE=$nonce KPSSH_RUN_UID=$uid KPSSH_A=1"; do
		# shellcheck disable=SC2086 # a parameter each
		param $lines
		prove
		answers 3 'prove takes'
	done
	param "KPSSH_NONCE=$nonce" "KPSSH_RUN_UID=$uid"
	rm /etc/ssh/ssh_host_*
	prove
	answers 23 'no host key'
}
