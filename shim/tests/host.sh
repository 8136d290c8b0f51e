# What the host itself must be like: code 23, 22, 14, 1; and who may call.

test_a_trust_file_that_others_may_write_is_23() {
	for file in shim.conf allowed_signers revoked_keys; do
		for mode in 664 646 666; do
			chmod "$mode" "/etc/kpssh/$file"
			run join
			answers 23 "$file"
		done
		chmod 644 "/etc/kpssh/$file"
		chown 1 "/etc/kpssh/$file"
		run join
		answers 23 "$file"
		chown 0 "/etc/kpssh/$file"
		mv "/etc/kpssh/$file" moved
		ln -s "$T/moved" "/etc/kpssh/$file"
		run join
		answers 23 "$file"
		rm "/etc/kpssh/$file"
		mkdir "/etc/kpssh/$file"
		run join
		answers 23 "$file"
		rmdir "/etc/kpssh/$file"
		mv moved "/etc/kpssh/$file"
	done
	run join
	answers 0
}

test_a_trust_directory_that_others_may_write_is_23() {
	chmod 775 /etc/kpssh
	run join
	answers 23
	chmod 700 /etc/kpssh
	run join
	answers 0
}

test_missing_revocations_or_settings_are_23() {
	for file in shim.conf revoked_keys; do
		mv "/etc/kpssh/$file" moved
		run join
		answers 23 "$file is missing"
		mv moved "/etc/kpssh/$file"
	done
}

test_settings_are_read_strictly() {
	while read -r line; do
		printf 'warrant=optional\n%s\n' "$line" >/etc/kpssh/shim.conf
		run join
		answers 23 'unknown key or bad value'
	done <<-'L'
		thresholds-join=1
		threshold-join=0
		threshold-join=9
		threshold-join=01
		threshold-join
		class
		Class=bm
		output-max=511
		output-max=1073741825
		output-max=0x1000
		output-max=
		output-max=99999999999999999999
		warrant = optional
		kubelet-key=relative
	L
	printf 'warrant=optional\nwarrant=optional\n' >/etc/kpssh/shim.conf
	run join
	answers 23 'warrant is given twice'
	: >/etc/kpssh/shim.conf
	run join
	answers 23 'is missing'
	printf 'warrant=maybe\n' >/etc/kpssh/shim.conf
	run join
	answers 23
}

test_all_settings_are_known_with_comments_between() {
	cat >/etc/kpssh/shim.conf <<-'C'
		# a comment

		warrant=optional
		class=bm-amd64
		threshold-install=1
		threshold-join=1
		threshold-leave=1
		threshold-uninstall=1
		root-threshold=2
		max-validity=90d
		max-serial-step=1000
		signers-expire=1802776000
		output-max=1048576
		kubelet-key=/var/lib/kubelet/pki/kubelet-client-current.pem
	C
	printf '# the end' >>/etc/kpssh/shim.conf
	run join
	answers 0
}

test_the_shipped_settings_require_warrants_once_they_are_filled_in() {
	held
	shipped=$tests/../etc/shim.conf
	sed 's/@CLASS@/bm/' "$shipped" >/etc/kpssh/shim.conf
	run join
	answers 23 'unknown key or bad value'
	sed "s/@END@/$((NOW + 200 * DAY))/" "$shipped" >/etc/kpssh/shim.conf
	run join
	answers 23 'unknown key or bad value'
	sed "s/@CLASS@/bm/; s/@END@/$((NOW + 200 * DAY))/" "$shipped" >/etc/kpssh/shim.conf
	run join
	answers 0
	printf 'echo without a warrant\n' | script
	sign alice
	run join
	answers 14
}

test_a_host_that_requires_warrants_knows_class_and_times() {
	held
	cp /etc/kpssh/shim.conf conf
	for key in class max-validity signers-expire; do
		grep -v "^$key=" conf >/etc/kpssh/shim.conf
		run join
		answers 23 "warrant=required needs $key"
	done
	cp conf /etc/kpssh/shim.conf
	ran join
}

# warranted prints a script with a warrant.
warranted() {
	cat <<-'S'
		#!/bin/bash
		#warrant: v1
		#warrant: profile tls-bootstrap
		#warrant: phase join
		#warrant: serial 42
		#warrant: not-after 1802776000
		#warrant: target any
		#warrant: end
		echo ran
	S
}

test_a_warrant_stands_at_the_start_of_a_line() {
	printf 'echo ran # no #warrant: at the start\n' >script
	sign alice
	run join
	answers 0
}

test_a_warrant_that_cannot_be_read_is_14() {
	for change in 's/serial 42/serial 042/' 's/serial 42/serial 42\r/' 's/serial 42/serial  42/' 's/serial 42/serial 9223372036854775808/'; do
		warranted | sed "$change" >script
		sign alice
		run join
		answers 14 'script: line 5 '
	done
	printf 'echo ran\n#warrant:' >script
	sign alice
	run join
	answers 14 'script: line 2 '
	{ warranted && printf '#warrant: v1\n'; } >script
	sign alice
	run join
	answers 14 'script: line 10 is of a warrant'
	{ warranted && printf '\000\n'; } >script
	sign alice
	run join
	answers 14 'script: line 10 holds a NUL byte'
}

test_a_template_is_14() {
	printf 'true\necho {{ .Name }}\n' >script
	sign alice
	run join
	answers 14 'line 2 holds {{'
	printf 'echo {a} { {b} }\n' >script
	sign alice
	run join
	answers 0
}

test_a_nul_in_the_script_is_14() {
	for text in 'echo a\n\0echo b\n' 'echo a\n\0' 'echo \0'; do
		# shellcheck disable=SC2059 # the format is the test
		printf "$text" >script
		sign alice
		run join
		answers 14 'NUL'
	done
	printf 'echo \303\251 \377 \001\n' >script
	sign alice
	run join
	answers 0
}

test_a_search_of_the_script_that_breaks_off_is_1() {
	printf 'echo {{ x\n' >script
	sign alice
	cp /bin/grep grep.whole
	printf '#!/bin/sh\ncase $1 in -aonb) exit 2 ;; esac\nexec %s/grep.whole "$@"\n' "$T" >broken
	chmod 0755 broken
	mount --bind broken "$(readlink -f /bin/grep)"
	run join
	umount "$(readlink -f /bin/grep)"
	answers 1 'could not be searched'
}

test_a_thousand_lines_hide_nothing() {
	{ yes '#!/bin/true' | head -n 1500 | sed 's/^/: <<E\n/;s/$/\nE/'; printf 'echo a\000b\n'; } >script
	sign alice
	run join
	answers 14 'line 4501 holds a NUL'
	{ yes '#!/bin/true' | head -n 1500 | sed 's/^/: <<E\n/;s/$/\nE/'; printf 'echo ran\n'; } >script
	sign alice
	run join
	answers 0
	for many in '{{' '#warrant: v1'; do
		yes "$many" | head -n 1500 >script
		sign alice
		run join
		answers 14
	done
}

test_a_work_directory_that_is_no_tmpfs_is_23() {
	mkdir /var/lib/disk
	mkdir -p /run/kpssh
	mount --bind /var/lib/disk /run/kpssh
	chmod 700 /run/kpssh
	run join
	answers 23 tmpfs
	# that it was one before counts for nothing
	umount /run/kpssh
	chmod 700 /run/kpssh
	run join
	answers 0
	mount --bind /var/lib/disk /run/kpssh
	run join
	answers 23 tmpfs
	[ -z "$(ls -A /var/lib/disk)" ] || fail 'something is on the disk'
}

# A child that is stopped before it has traps of its own has the shim's, in bash.
test_a_child_that_is_stopped_early_leaves_the_work_files() {
	sed -e '/^case /d' -e '/^begin$/d' -e '/^main "\$@"$/d' "$SHIM" >functions
	cat >child <<-'S'
		. ./functions
		work=/run/w answer='' beside=''
		: >/run/w.script
		trap leave_clean EXIT
		status=0
		(leave_clean) || status=$?
		[ "$status" -eq 1 ] && [ -e /run/w.script ] || exit 9
		answer=$FAILED
	S
	code=0
	/bin/sh child || code=$?
	[ "$code" -eq 10 ] || fail "it ended with $code, not 10"
	[ ! -e /run/w.script ] || fail 'the shim itself left its work files'
}

test_a_work_directory_of_others_is_23() {
	mkdir /run/kpssh
	chmod 755 /run/kpssh
	run join
	answers 23 /run/kpssh
	chmod 700 /run/kpssh
	chown 1 /run/kpssh
	run join
	answers 23 /run/kpssh
	rmdir /run/kpssh
	mkdir -m 700 /run/other
	ln -s other /run/kpssh
	run join
	answers 23 /run/kpssh
}

test_missing_state_is_22() {
	chmod 755 /var/lib/hostwarrant
	run join
	answers 22
	rmdir /var/lib/hostwarrant
	run join
	answers 22
	printf 'kpssh-envelope: 1\nphase: outcome\nrun-id: %s\n' $ID >envelope
	shim <envelope
	answers 22
}

test_a_dirty_environment_has_no_effect() {
	script <<-'S'
		env | sort
		type -t evil || true
	S
	sign alice
	printf 'echo evil; exit 9\n' >evil
	envelope join >envelope
	code=0
	env BASH_ENV="$T/evil" ENV="$T/evil" 'BASH_FUNC_evil%%=() { echo evil; }' 'BASH_FUNC_read%%=() { echo evil; }' LD_PRELOAD="$T/evil.so" A.B=evil \
		KPSSH_EVIL=1 SHELLOPTS=xtrace PS4=evil IFS=e PATH="$T" SSH_ORIGINAL_COMMAND=evil LC_ALL=de_DE.UTF-8 HOME=/evil KPSSH_SHIM_PID=1 \
		TMPDIR="$T" POSIXLY_CORRECT=1 /bin/sh -c "exec $SHIM" <envelope >out 2>err || code=$?
	answers 0
	grep -v -e '^PWD=' -e '^SHLVL=' -e '^OLDPWD=' -e '^_=' out >got
	printf '%s\n' HOME=/root KPSSH_NODE_NAME=node-1 LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin | cmp -s - got || fail 'another environment'
}

test_a_guessed_marker_does_not_keep_a_dirty_environment() {
	envelope join >envelope
	code=0
	/bin/sh -c "KPSSH_SHIM_PID=\$\$ KPSSH_EVIL=1 exec $SHIM" <envelope >out 2>err || code=$?
	[ "$code" -eq 1 ] || fail "answered $code, not 1"
	[ ! -s out ] || fail 'the script ran'
}

test_an_error_of_the_shim_itself_is_1() {
	mount --bind /bin/false /usr/bin/mkfifo
	run join
	answers 1 'internal error'
}

test_the_user_kpssh_comes_through_sudo_with_no_argument() {
	printf 'kpssh:x:990:990::/nonexistent:/bin/sh\n' >>/etc/passwd
	printf 'kpssh:x:990:\n' >>/etc/group
	printf 'kpssh:*:19000:0:99999:7:::\n' >>/etc/shadow
	mkdir -p /etc/sudoers.d
	install -m 0440 "$tests/../etc/sudoers.d/kpssh" /etc/sudoers.d/kpssh
	script <<-'S'
		id -u
		env | grep -c SUDO || true
	S
	sign alice
	envelope join >envelope
	chmod 755 "$T"
	code=0
	setpriv --reuid 990 --regid 990 --clear-groups env LD_PRELOAD= BASH_ENV=x "$SHIM" <envelope >out 2>err || code=$?
	answers 0
	says "0${LF}0"
	for arguments in x '-x y' "''"; do
		code=0
		setpriv --reuid 990 --regid 990 --clear-groups sh -c "sudo -n $SHIM $arguments" <envelope >out 2>err || code=$?
		[ "$code" -eq 1 ] || fail "sudo let arguments through: $arguments"
	done
	code=0
	setpriv --reuid 990 --regid 990 --clear-groups sudo -n /bin/true >out 2>err || code=$?
	[ "$code" -eq 1 ] || fail 'sudo lets the user do more'
	mv /etc/sudoers.d/kpssh moved
	code=0
	setpriv --reuid 990 --regid 990 --clear-groups "$SHIM" <envelope >out 2>err || code=$?
	[ "$code" -eq 1 ] || fail "without the sudoers entry: $code"
	[ ! -s out ] || fail 'without the sudoers entry something ran'
}
