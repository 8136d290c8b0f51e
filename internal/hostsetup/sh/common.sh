# --- what both scripts share ------------------------------------------------

set -euf
umask 077
PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
export PATH LC_ALL

changed=0

say() { printf 'hostwarrant: %s\n' "$1"; }

# many 1 change is "1 change".
many() { # NUMBER NOUN
	[ "$1" = 1 ] && printf '%s %s' "$1" "$2" || printf '%s %ss' "$1" "$2"
}

did() {
	changed=$((changed + 1))
	say "$1"
}

die() { # FAULT [HINT]
	printf 'hostwarrant: error: %s\n' "$1" >&2
	[ -z "${2-}" ] || printf 'hostwarrant: hint: %s\n' "$2" >&2
	exit 1
}

# check_caller: who is logged in as the account would saw off the branch that it sits on.
check_caller() {
	[ "$(id -u)" = 0 ] || die 'this needs root' 'run it again with sudo'
	[ "${SUDO_USER-}" != kpssh ] || die 'you are logged in as kpssh' 'log in as somebody else'
}

# open_work keeps two of these scripts apart, and makes a directory in memory.
open_work() {
	exec 9>/run/hostwarrant.lock
	flock -n 9 || die 'another setup of this host is going on' 'wait for its end'
	work=$(mktemp -d /run/hostwarrant.XXXXXX)
	trap 'rm -rf "$work"' EXIT
	trap 'exit 130' INT TERM HUP
}

# reload_sshd: sessions that are open go on.
reload_sshd() {
	pidfile=$("$(command -v sshd)" -T 2>/dev/null | sed -n 's/^pidfile //p')
	before=$(stat -c '%i %z' "$pidfile" 2>/dev/null) || before=
	if [ -d /run/systemd/system ]; then
		for unit in ssh.service sshd.service; do
			if systemctl -q is-active "$unit"; then
				systemctl reload "$unit"
				await_sshd
				did "reloaded $unit"
				return
			fi
		done
	else
		read -r pid 2>/dev/null <"$pidfile" || pid=
		if [ -n "$pid" ] && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = sshd ]; then
			kill -HUP "$pid"
			await_sshd
			did "reloaded sshd, process $pid"
			return
		fi
	fi
	say 'sshd does not run as a service now: there is nothing to reload'
}

# unread_sshd: whether the sshd that runs goes by what was in its configuration
# before. "host check" asks the same in the same way.
unread_sshd() {
	pidfile=$("$(command -v sshd)" -T 2>/dev/null | sed -n 's/^pidfile //p')
	read -r pid 2>/dev/null <"$pidfile" || return 1
	[ "$(cat "/proc/$pid/comm" 2>/dev/null)" = sshd ] || return 1
	set +f
	last=$({
		stat -c '%.Z changed' /etc/ssh/sshd_config /etc/ssh/sshd_config.d /etc/ssh/sshd_config.d/*.conf 2>/dev/null
		stat -c '%.Y loaded' "$pidfile"
	} | sort -n -s -k 1,1 | tail -n 1)
	set -f
	[ "${last#* }" = changed ]
}

# await_sshd: the signal only asks. sshd writes its pid file anew once it listens
# again, with what it has read. Until then there may be none.
await_sshd() {
	tries=0
	while [ -n "$before" ]; do
		now=$(stat -c '%i %z' "$pidfile" 2>/dev/null) || now=
		[ ! -s "$pidfile" ] || [ -z "$now" ] || [ "$now" = "$before" ] || return 0
		tries=$((tries + 1))
		if [ "$tries" -gt 100 ]; then
			say 'sshd was told to read its configuration again and has not said so for 10 s: look at its log'
			return
		fi
		sleep 0.1
	done
}
