# What comes over the wire before anything of it is believed: code 4, 5, 3.

# edited SED-SCRIPT sends the good envelope, changed.
edited() {
	envelope join >whole
	sed "$@" <whole >envelope
	shim <envelope
}

test_a_signed_script_runs_with_its_parameters() {
	run join
	answers 0
	says 'joined node-1'
	[ ! -s err ] || fail 'stderr is not empty'
}

test_fields_come_in_any_order_and_the_last_may_lack_its_newline() {
	envelope join >whole
	{
		tail -n 2 whole
		head -n 3 whole
	} >envelope
	truncate -s -1 envelope
	shim <envelope
	answers 0
	says 'joined node-1'
}

test_a_missing_field_is_refused() {
	for field in kpssh-envelope phase params-b64 sig-b64 script-b64; do
		edited "/^$field:/d"
		answers 4 "field $field missing"
	done
	shim </dev/null
	answers 4
}

test_a_repeated_field_is_refused() {
	for field in kpssh-envelope phase params-b64 sig-b64 script-b64; do
		edited "/^$field:/p"
		answers 4 'twice'
	done
}

test_a_line_that_is_no_field_is_refused() {
	for line in 'hello: x' '' ' phase: join' 'Phase: join' 'phase:join' 'run-id: 0123' "run-id: $(printf %s "$ID" | tr a-f A-F)" \
		'kpssh-envelope: 2' 'phase: ' 'late' 'unknown'; do
		edited "\$a\\
$line"
		answers 4
	done
}

test_crlf_line_ends_are_refused() {
	edited 's/$/\r/'
	answers 4
}

test_a_nul_byte_is_refused() {
	envelope join >envelope
	printf '\0' >>envelope
	shim <envelope
	answers 4 'no field'
	edited 's/^phase: join/phase: jo\x00in/'
	answers 4 'no field'
}

test_base64_has_one_spelling() {
	printf 'KPSSH_A=1\n' >params # S1BTU0hfQT0xCg==
	run join
	answers 0
	for other in S1BTU0hfQT0xCg S1BTU0hfQT0xCg= S1BTU0hfQT0xCh== 'S1BTU0hf QT0xCg==' 'S1BTU0hfQT0xCg==S1BTU0hfQT0xCg==' 'S1BTU0hf!T0xCg=='; do
		edited "s/^params-b64: .*/params-b64: $other/"
		answers 4 'no field'
	done
}

test_fields_over_their_limit_are_refused() {
	head -c 262145 /dev/zero | tr '\0' x >params
	run join
	answers 4 'params of 262145'
	: >params
	cp sig sig.good
	head -c 16385 /dev/zero >sig
	run join
	answers 4 'sig of 16385'
	cp sig.good sig
	head -c 1048577 /dev/zero | tr '\0' '#' >script
	run join
	answers 4 'script of 1048577'
}

test_a_script_at_its_limit_runs() {
	{
		printf 'echo big; exit\n'
		head -c 1048561 /dev/zero | tr '\0' '#'
	} >script
	[ "$(stat -c %s script)" -eq 1048576 ] || fail 'the script has another size'
	sign alice
	run join
	answers 0
	says big
}

test_an_empty_script_is_refused() {
	: >script
	sign alice
	run join
	answers 4 'script is empty'
}

test_more_than_two_mebibytes_are_refused() {
	envelope join >envelope
	head -c 2200000 /dev/zero | tr '\0' x >>envelope
	shim <envelope
	answers 4
	head -c 3000000 /dev/zero >envelope
	shim <envelope
	answers 4
}

test_input_without_an_end_is_refused_in_time() {
	set_constant READ_SECONDS 1
	mkfifo slow
	envelope join >whole
	sleep 30 >slow &
	holder=$!
	cat whole >slow &
	shim <slow
	answers 4 'no end of input within 1 s'
	kill "$holder"
}

test_an_argument_is_refused() {
	code=0
	"$SHIM" --help </dev/null >out 2>err || code=$?
	answers 4 'takes no arguments'
	code=0
	"$SHIM" '' </dev/null >out 2>err || code=$?
	answers 4 'takes no arguments'
}

test_an_unknown_phase_is_5() {
	for phase in Join joi install2; do
		edited "s/^phase: .*/phase: $phase/"
		answers 5 "phase $phase"
	done
}

test_a_statement_on_a_run_is_refused() {
	edited '$a\
statement-b64: eA=='
	answers 4 'takes no statement'
	edited '$a\
statement-sig-b64: eA=='
	answers 4 'takes no statement'
}

test_an_envelope_is_judged_whole_whatever_its_phase() {
	edited -e 's/^phase: .*/phase: probe/' -e '$a\
statement-b64: eA=='
	answers 4 'takes no statement'
	head -c 1048577 /dev/zero | tr '\0' '#' >script
	run probe
	answers 4 'script of 1048577'
}

test_a_parameter_name_off_the_list_is_3() {
	for line in BASH_ENV=/tmp/x PATH=/tmp LD_PRELOAD=x.so KPSSH_=x KPSSH_=x=y 'KPSSH_x;id=1' 'KPSSH_x y=1' KPSSH_x kpssh_x=1 =1 'KPSSH_$(id)=1' \
		'KPSSH_A[0]=1' ' KPSSH_A=1' 'BASH_FUNC_echo%%=() { id; }' '#'; do
		printf 'KPSSH_NODE_NAME=n\n%s\n' "$line" >params
		run join
		answers 3 'not KPSSH_NAME=value'
	done
}

test_a_newline_in_a_value_is_3() {
	printf 'KPSSH_NODE_NAME=a\nb\n' >params
	run join
	answers 3 'not KPSSH_NAME=value'
	printf 'KPSSH_NODE_NAME=a\n\nKPSSH_B=b\n' >params
	run join
	answers 3 'an empty line'
}

test_a_carriage_return_in_a_value_is_3() {
	printf 'KPSSH_NODE_NAME=a\rb\n' >params
	run join
	answers 3 'carriage return'
}

test_a_nul_in_the_parameters_is_3() {
	printf 'KPSSH_NODE_NAME=a\0b\n' >params
	run join
	answers 3 'NUL'
}

test_parameters_without_their_last_newline_are_3() {
	printf 'KPSSH_NODE_NAME=a' >params
	run join
	answers 3 'does not end'
}

test_a_parameter_given_twice_is_3() {
	printf 'KPSSH_NODE_NAME=a\nKPSSH_NODE_NAME=a\n' >params
	run join
	answers 3 'KPSSH_NODE_NAME is given twice'
}

test_too_many_parameters_are_3() {
	seq 1 512 | sed 's/.*/KPSSH_&=x/' >params
	script <<-'S'
		env | grep -c '^KPSSH_'
	S
	sign alice
	run join
	answers 0
	says 512
	echo KPSSH_one_more=x >>params
	run join
	answers 3 'more than 512'
}

test_a_parameter_that_no_program_can_be_started_with_is_3() {
	script <<-'S'
		echo "${#KPSSH_A}"
	S
	sign alice
	printf 'KPSSH_A=%s\n' "$(head -c 131063 /dev/zero | tr '\0' x)" >params
	run join
	answers 0
	says 131063
	printf 'KPSSH_A=%s\n' "$(head -c 131064 /dev/zero | tr '\0' x)" >params
	run join $ID
	answers 3 'KPSSH_A of 131072 bytes'
	[ ! -e /var/lib/hostwarrant/runs/$ID ] || fail 'the run-id was used up'
}

test_parameter_values_arrive_byte_for_byte() {
	printf 'KPSSH_NODE_NAME=$(id) `id` "q" '\''s'\'' \\ = * \303\251 \001  \n' >params
	script <<-'S'
		printf '%s\n' "$KPSSH_NODE_NAME"
	S
	sign alice
	run join
	answers 0
	sed 's/^KPSSH_NODE_NAME=//' params | cmp -s - out || fail 'the value changed'
	: >params
	run join
	answers 0
	says ''
}

test_no_secret_shows_in_any_argument_or_helper() {
	printf 'KPSSH_BOOTSTRAP_TOKEN=topsecret\n' >params
	script <<-'S'
		sleep 0.5
		for p in /proc/[0-9]*; do
			[ "$p" != "/proc/$$" ] || continue
			! tr '\0' '\n' <"$p/cmdline" 2>/dev/null | command grep -a topsecret || echo "argv of $p"
			! tr '\0' '\n' <"$p/environ" 2>/dev/null | command grep -qa topsecret || echo "environ of $(tr '\0' ' ' <"$p/cmdline")"
		done | grep -v 'environ of $' | grep -v -e 'environ of tr' -e 'environ of grep' -e 'environ of /bin/bash' -e 'environ of sleep' || :
	S
	sign alice
	run join
	answers 0
	[ ! -s out ] || fail 'the secret is visible'
}

test_probe_prints_what_upstream_prints() {
	printf 'kpssh-envelope: 1\nphase: probe\n' >envelope
	rm /etc/kpssh/allowed_signers
	shim <envelope
	answers 0
	{
		nproc
		sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1/p' /proc/meminfo
		uname -m
	} | cmp -s - out || fail 'not the three values'
}
