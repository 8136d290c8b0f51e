# Running: output, time limits, the lock, background children. Codes 10, 11, 12.

runs() { # the script on stdin, signed and run
	script
	sign alice
	run join "$@"
}

record() { # STATE PHASE CODE EXIT…: the outcome of ID begins like this
	printf 'kpssh-envelope: 1\nphase: outcome\nrun-id: %s\n' $ID >envelope
	shim <envelope
	answers 0
	case $(cat out) in
	"kpssh-outcome: v1 run-id=$ID state=$1 phase=$2 code=$3 exit=$4 "*) ;;
	*) fail "the outcome is not state=$1 phase=$2 code=$3 exit=$4" ;;
	esac
}

# trailer EXIT CUT: out ends in the trailer that its own bytes ask for.
trailer() {
	size=$(stat -c %s out)
	tail -n 1 out >last
	body=$((size - $(sed 's/^.*kpssh-trailer/kpssh-trailer/' last | wc -c)))
	head -c "$body" out >body
	printf 'kpssh-trailer: v1 run-id=%s phase=join exit=%s bytes=%s sha256=%s cut=%s\n' \
		$ID "$1" "$body" "$(sha256sum <body | cut -d ' ' -f 1)" "$2" >expected
	tail -c "+$((body + 1))" out | cmp -s - expected || fail "not the trailer: $(cat expected)"
}

test_a_script_that_fails_is_10_whatever_its_status() {
	for status in 1 2 4 11 124 126 127 137 255; do
		runs <<-S
			exit $status
		S
		answers 10
		[ "$(cat err)" = "kpssh-shim: script exited $status" ] || fail "stderr is not: script exited $status"
	done
	runs $ID <<-'S'
		echo before; kill -9 $$; echo after
	S
	answers 10
	contains err 'kpssh-shim: script exited 137'
	trailer 137 0
	record ended join 10 137
}

test_a_syntax_error_is_10() {
	runs <<-'S'
		if then
	S
	answers 10
	contains err 'script exited 2'
}

test_the_trailer_follows_the_last_byte_of_output() {
	runs $ID <<-'S'
		printf 'no newline at the end'
	S
	answers 0
	trailer 0 0
	rm /var/lib/hostwarrant/runs/$ID
	runs $ID <<-'S'
		:
	S
	answers 0
	trailer 0 0
	rm /var/lib/hostwarrant/runs/$ID
	runs $ID <<-'S'
		printf 'kpssh-trailer: v1 run-id=0123456789abcdef0123456789abcdef phase=join exit=0 bytes=0 sha256=x cut=0\n'; exit 3
	S
	answers 10
	trailer 3 0
}

test_without_a_run_id_there_is_no_trailer_and_no_record() {
	run join
	answers 0
	! grep -q kpssh-trailer out || fail 'a trailer'
	[ ! -e /var/lib/hostwarrant/runs ] || fail 'a record'
}

test_stdout_and_stderr_stay_apart() {
	runs <<-'S'
		echo to stdout; echo to stderr >&2; exit 3
	S
	answers 10
	says 'to stdout'
	printf 'to stderr\nkpssh-shim: script exited 3\n' | cmp -s - err || fail 'another stderr'
}

test_the_script_starts_in_a_plain_place() {
	# shellcheck disable=SC2012 # of descriptors that the tests' own caller left open
	ls -l /proc/$$/fd | sed -n 's/.*-> //p' >/run/inherited
	# and of signals that it ignores, which no shell can take back: INT and QUIT must be added
	ignored=$(sed -n 's/^SigIgn:[^0-9a-f]*//p' /proc/$$/status)
	printf 'SigIgn:\t%016x\n' "$((0x$ignored | 6))" >/run/ignored
	runs <<-'S'
		set -e
		cat
		[ "$(pwd)" = / ]
		[ "$(umask)" = 0022 ]
		read -r pid _ _ _ pgrp session _ </proc/self/stat
		[ "$pgrp $session" = "$$ $$" ]
		grep -qFf /run/ignored /proc/$$/status
		ls -l /proc/$$/fd >/run/fds
		grep -e '->' /run/fds | grep -vFf /run/inherited | grep -v -e ' /dev/null$' -e ' /run/kpssh/[0-9]*[.]script$' -e ' /run/kpssh/[0-9]*[.]...[.]pipe$' || :
		[ "$(ulimit -f)" = unlimited ]
	S
	answers 0
	[ ! -s out ] || fail 'more than nothing'
}

test_ten_mebibytes_arrive_whole() {
	runs $ID <<-'S'
		head -c 10485760 /dev/urandom
	S
	answers 0
	trailer 0 0
	[ "$(stat -c %s out)" -gt 10485760 ] || fail 'too short'
}

test_output_beyond_the_limit_is_cut_and_said_to_be() {
	printf 'output-max=1048576\n' >>/etc/kpssh/shim.conf
	runs $ID <<-'S'
		head -c 5000000 /dev/zero; head -c 5000000 /dev/zero >&2; exit 0
	S
	answers 0
	trailer 0 1
	[ "$(stat -c %s body)" -eq 1048576 ] || fail 'another length'
	[ "$(stat -c %s err)" -eq 1048576 ] || fail 'another length of stderr'
	rm /var/lib/hostwarrant/runs/$ID
	runs $ID <<-'S'
		head -c 1048576 /dev/zero
	S
	answers 0
	trailer 0 0
}

test_dash_only_a_gibibyte_is_counted_and_dropped() {
	runs $ID <<-'S'
		head -c 1073741824 /dev/zero
	S
	answers 0
	trailer 0 1
	[ "$(stat -c %s body)" -eq 16777216 ] || fail 'another length'
}

test_a_child_that_keeps_stdout_open_is_not_waited_for() {
	runs $ID <<-'S'
		sleep 300 &
		echo started
	S
	answers 0
	trailer 0 0
	contains out started
	run leave
	answers 0
}

test_a_child_that_keeps_writing_does_not_change_the_answer() {
	runs $ID <<-'S'
		(while :; do echo x || { echo broken >/run/broken; exit; }; done) &
		sleep 0.5
		exit 0
	S
	answers 0
	trailer 0 "$(grep -o 'cut=[01]$' out | tail -n 1 | cut -d= -f 2)"
	[ ! -e /run/broken ] || fail "the child's pipe broke"
}

test_a_daemon_does_not_block_the_next_run() {
	runs <<-'S'
		setsid sleep 300 >/dev/null 2>&1 </dev/null &
		echo up
	S
	answers 0
	runs <<-'S'
		echo again
	S
	answers 0
	says again
}

test_a_concurrent_run_is_12() {
	script <<-'S'
		: >/run/started; while [ ! -e /run/go ]; do sleep 0.05; done; echo done
	S
	sign alice
	envelope join $ID >long
	"$SHIM" <long >long.out 2>long.err &
	until_true test -e /run/started
	run leave
	answers 12 'another run'
	run join $ID
	answers 12
	record running join - -
	: >/run/go
	wait $!
	contains long.out 'done'
	record ended join 0 0
	printf 'echo next\n' >script
	sign alice
	run leave
	answers 0
}

test_a_known_run_id_never_runs_again() {
	runs $ID <<-'S'
		echo x >>/run/count; exit 7
	S
	answers 10
	cp out first
	run join $ID
	[ "$code" -eq 10 ] || fail "answered $code, not 10"
	says "kpssh-outcome: v1 run-id=$ID state=ended phase=join code=10 exit=7 bytes=0 sha256=$(sha256sum </dev/null | cut -d ' ' -f 1) cut=0"
	runs $ID <<-'S'
		echo other >>/run/count
	S
	[ "$code" -eq 10 ] || fail "answered $code, not 10"
	[ "$(cat /run/count)" = x ] || fail 'it ran twice'
}

test_an_unknown_run_id_is_said_to_be_unknown() {
	record unknown - - -
	printf 'kpssh-envelope: 1\nphase: outcome\n' >envelope
	shim <envelope
	answers 4 'needs a run-id'
}

test_a_run_whose_end_was_lost_has_ended_and_does_not_run_again() {
	mkdir -m 700 /var/lib/hostwarrant/runs
	for line in "start join 1 1 11111111-2222-3333-4444-555555555555$LF" 'start jo' '' "start join 1 1 x${LF}kpssh-outcome: v1 run-id=$ID state=ended phase=join code=0 exit=0 byt"; do
		printf %s "$line" >/var/lib/hostwarrant/runs/$ID
		case $line in *' 1 1 '*) phase='join' ;; *) phase=- ;; esac
		record ended "$phase" - -
		run join $ID
		[ "$code" -eq 1 ] || fail "answered $code, not 1"
		! grep -q joined out || fail 'it ran'
	done
}

test_the_last_fifty_runs_are_remembered() {
	mkdir -m 700 /var/lib/hostwarrant/runs
	i=0
	while [ $i -lt 64 ]; do
		i=$((i + 1))
		printf 'start join 1 1 x\n' >"$(printf '/var/lib/hostwarrant/runs/%032d' $i)"
		touch -d "@$((1000000000 + i))" "$(printf '/var/lib/hostwarrant/runs/%032d' $i)"
	done
	run join $ID
	answers 0
	set -- /var/lib/hostwarrant/runs/*
	[ $# -eq 50 ] || fail "$# records"
	[ -e /var/lib/hostwarrant/runs/$ID ] || fail 'the newest is gone'
	[ ! -e "$(printf '/var/lib/hostwarrant/runs/%032d' 15)" ] || fail 'an old one is kept'
	[ -e "$(printf '/var/lib/hostwarrant/runs/%032d' 16)" ] || fail 'one too many is gone'
}

test_a_time_limit_ends_the_group_and_is_11() {
	set_constant TIMEOUT_JOIN 1
	set_constant GRACE_SECONDS 1
	runs $ID <<-'S'
		(trap '' TERM; : >/run/member; while :; do sleep 0.1; done) &
		setsid sh -c 'echo $$ >/run/daemon; exec sleep 300' >/dev/null 2>&1 &
		echo $! >/run/ignored
		trap 'exit 0' TERM
		echo waiting
		ps -o pgid= $$ >/dev/null 2>&1
		(echo $BASHPID >/run/pid; trap '' TERM; exec sleep 301) &
		wait
		sleep 302
	S
	answers 11
	contains err 'script stopped after its 1 s'
	contains out waiting
	record ended join 11 0
	! kill -0 "$(cat /run/pid)" 2>/dev/null || fail 'a member of the group is alive'
	kill -0 "$(cat /run/daemon)" || fail 'the daemon is dead'
	printf 'echo next\n' >script
	sign alice
	run join
	answers 0
}

test_a_script_that_ignores_term_is_killed() {
	set_constant TIMEOUT_JOIN 1
	set_constant GRACE_SECONDS 1
	runs $ID <<-'S'
		trap '' TERM
		while :; do sleep 0.1; done
	S
	answers 11
	trailer 137 0
}

test_each_phase_has_its_own_time_limit() {
	for phase in INSTALL LEAVE UNINSTALL; do
		set_constant "TIMEOUT_$phase" 1
	done
	set_constant GRACE_SECONDS 1
	script <<-'S'
		sleep 2
	S
	sign alice
	for phase in install leave uninstall; do
		run $phase
		answers 11
	done
	run join
	answers 0
}

test_a_caller_that_is_killed_does_not_stop_the_script() {
	script <<-'S'
		: >/run/started; while [ ! -e /run/go ]; do sleep 0.05; done
		head -c 300000 /dev/zero; echo late >&2; echo finished >/run/finished; exit 7
	S
	sign alice
	envelope join $ID >long
	mkfifo answer
	cat answer >/dev/null &
	caller=$!
	"$SHIM" <long >answer 2>answer &
	until_true test -e /run/started
	kill -KILL $caller
	: >/run/go
	until_true test -e /run/finished
	wait $! || :
	record ended join 10 7
	contains out 'bytes=300000'
}

# A helper that sleeps on with the caller's channel in its hands makes each caller wait for it.
test_no_helper_that_sleeps_holds_the_callers_channel() {
	runs $ID <<-'S'
		i=0
		while [ $i -lt 8 ]; do
			i=$((i + 1))
			for p in /proc/[0-9]*; do
				read -r name <"$p/comm" || continue
				[ "$name" = sleep ] && [ "$p/fd/1" -ef "/proc/$PPID/fd/1" ] && echo "held by a sleep"
			done 2>/dev/null
			sleep 0.03 >/dev/null
		done
		[ -e "/proc/$PPID/fd/1" ] && echo looked
	S
	answers 0
	contains out looked
	! grep held out || fail 'a sleep has the stdout of the shim'
}

test_signals_to_the_shim_do_not_stop_the_script() {
	script <<-'S'
		: >/run/started; while [ ! -e /run/go ]; do sleep 0.05; done; echo finished
	S
	sign alice
	envelope join $ID >long
	"$SHIM" <long >long.out 2>long.err &
	until_true test -e /run/started
	for signal in HUP INT QUIT PIPE TERM; do
		kill -$signal $!
	done
	: >/run/go
	wait $! || fail 'the shim failed'
	contains long.out finished
}

test_a_caller_that_does_not_read_delays_only_its_own_answer() {
	script <<-'S'
		head -c 4000000 /dev/zero; sleep 0.6; head -c 4000000 /dev/zero
	S
	sign alice
	envelope join $ID >long
	mkfifo answer
	# shellcheck disable=SC2217 # it holds the pipe open and reads nothing
	sleep 300 <answer &
	reader=$!
	"$SHIM" <long >answer 2>long.err &
	until_true grep -qs state=ended /var/lib/hostwarrant/runs/$ID
	record ended join 0 0
	contains out 'bytes=8000000'
	printf 'echo next\n' >script
	sign alice
	until_true next_run_is_free
	kill -0 $! || fail 'the first shim is gone'
	kill $reader
	wait $! || fail 'the first shim failed'
}

next_run_is_free() {
	run leave
	[ "$code" -eq 0 ]
}

test_output_is_sent_while_the_script_runs() {
	script <<-'S'
		echo early; echo early-err >&2; while [ ! -e /run/go ]; do sleep 0.05; done; echo late
	S
	sign alice
	envelope join >long
	"$SHIM" <long >long.out 2>long.err &
	until_true grep -qs early long.out
	until_true grep -qs early-err long.err
	: >/run/go
	wait $!
	printf 'early\nlate\n' | cmp -s - long.out || fail 'not each byte once'
}

test_a_killed_shim_keeps_the_host_busy_until_the_script_is_over() {
	script <<-'S'
		echo $$ >/run/started; while [ ! -e /run/go ]; do sleep 0.05; done; : >/run/finished
	S
	sign alice
	envelope join $ID >long
	"$SHIM" <long >long.out 2>long.err &
	until_true test -s /run/started
	kill -KILL $!
	wait $! 2>/dev/null || :
	run leave
	answers 12 'shim that was killed'
	record running join - -
	: >/run/go
	until_true script_is_gone
	record ended join - -
	printf 'echo next\n' >script
	sign alice
	run leave
	answers 0
	until_true nothing_left
}

script_is_gone() {
	! kill -0 "$(cat /run/started)" 2>/dev/null
}

nothing_left() {
	[ -z "$(ls /run/kpssh)" ]
}

test_the_time_limit_holds_when_the_shim_was_killed() {
	set_constant TIMEOUT_JOIN 2
	script <<-'S'
		echo $$ >/run/started; sleep 300
	S
	sign alice
	envelope join >long
	"$SHIM" <long >long.out 2>long.err &
	until_true test -s /run/started
	kill -KILL $!
	until_true script_is_gone
}

test_nothing_is_left_in_memory_after_a_run() {
	runs $ID <<-'S'
		sleep 0.5; echo x; exit 1
	S
	answers 10
	nothing_left || fail 'work files are left'
	run join $ID
	nothing_left || fail 'work files are left'
	sign mallory
	run join
	nothing_left || fail 'work files are left'
	[ ! -s /var/lib/hostwarrant/running ] || fail 'running is not empty'
	! pgrep -x sleep >/dev/null || until_true no_sleep_left
}

no_sleep_left() {
	! pgrep -x sleep >/dev/null
}

test_work_files_of_a_shim_with_the_same_process_id_do_no_harm() {
	mkdir -m 700 /run/kpssh
	envelope join >envelope
	code=0
	/bin/sh -c 'for n in claim over out.count err.count out.pipe leader; do echo 1 >"/run/kpssh/$$.$n"; done; exec "$0"' "$SHIM" <envelope >out 2>err || code=$?
	answers 0
	says 'joined node-1'
}

test_a_script_that_takes_the_work_files_away_has_run() {
	runs $ID <<-'S'
		rm -rf /run/kpssh/*
		echo out; echo err >&2; echo ran >>/run/ran; exit 3
	S
	answers 10
	trailer 3 0
	printf 'out\n' | cmp -s - body || fail 'another output'
	printf 'err\nkpssh-shim: script exited 3\n' | cmp -s - err || fail 'another stderr'
	run join $ID
	answers 10 'has been run before'
	[ "$(wc -l </run/ran)" -eq 1 ] || fail 'it ran twice'
}

test_the_time_limit_holds_without_work_files() {
	set_constant TIMEOUT_JOIN 1
	set_constant GRACE_SECONDS 1
	runs $ID <<-'S'
		rm -rf /run/kpssh/*
		echo waiting
		trap '' TERM
		while :; do sleep 0.1; done
	S
	answers 11
	trailer 137 0
}

test_the_time_limit_holds_when_no_file_can_be_made() {
	mkdir -p /run/kpssh
	chmod 700 /run/kpssh
	mount -t tmpfs -o mode=700,nr_inodes=60 tmpfs /run/kpssh
	runs $ID <<-'S'
		i=0
		while : 2>/dev/null >/run/kpssh/1.$i; do i=$((i + 1)); done
		sleep 0.5
		exit 3
	S
	answers 10
	trailer 3 0
	rm /run/kpssh/1.* /var/lib/hostwarrant/runs/$ID
	set_constant TIMEOUT_JOIN 1
	runs $ID <<-'S'
		i=0
		while : 2>/dev/null >/run/kpssh/1.$i; do i=$((i + 1)); done
		sleep 30
	S
	answers 10
	trailer 143 0
}

test_a_directory_among_the_work_files_stops_no_run() {
	runs $ID <<-'S'
		mkdir /run/kpssh/none /run/kpssh/$PPID.own
	S
	answers 0
	trailer 0 0
	[ ! -s err ] || fail 'noise'
	runs <<-'S'
		echo next
	S
	answers 0
	says next
}

test_a_full_work_directory_is_not_the_callers_fault() {
	mkdir -p /run/kpssh
	chmod 700 /run/kpssh
	mount -t tmpfs -o mode=700,size=4k tmpfs /run/kpssh
	head -c 8000 /dev/zero | tr '\0' '#' | script
	sign alice
	run join
	answers 1 'cannot be kept'
}

# A signal that wakes a bash from its wait as the child ends makes it lose the child's status.
test_the_end_is_seen_whenever_it_comes() {
	for i in 16 17 18 19 20 21 22 23; do
		runs $ID <<-S
			sleep 0.$i; exit 3
		S
		answers 10
		trailer 3 0
		[ "$(cat err)" = 'kpssh-shim: script exited 3' ] || fail "noise: $(cat err)"
		rm /var/lib/hostwarrant/runs/$ID
	done
}
