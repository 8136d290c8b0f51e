# --- what both scripts share ------------------------------------------------

set -euf
umask 077
PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
export PATH LC_ALL

changed=0

say() { printf 'hostwarrant: %s\n' "$1"; }

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
	if [ -d /run/systemd/system ]; then
		for unit in ssh.service sshd.service; do
			if systemctl -q is-active "$unit"; then
				systemctl reload "$unit"
				did "reloaded $unit"
				return
			fi
		done
	else
		pidfile=$("$(command -v sshd)" -T 2>/dev/null | sed -n 's/^pidfile //p')
		read -r pid 2>/dev/null <"$pidfile" || pid=
		if [ -n "$pid" ] && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = sshd ]; then
			kill -HUP "$pid"
			did "reloaded sshd, process $pid"
			return
		fi
	fi
	say 'sshd does not run as a service now: there is nothing to reload'
}
