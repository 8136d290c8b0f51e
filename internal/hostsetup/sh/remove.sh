# --- removing ---------------------------------------------------------------

state=/var/lib/hostwarrant

check_host() {
	check_caller
	[ ! -e "$state/running" ] || flock -n "$state/running" true || die 'a phase script is running on this host' 'wait for its end'
}

drop() { # PATH
	if [ -e "$1" ] || [ -L "$1" ]; then
		rm -f "$1"
		did "removed $1"
	fi
}

# drop_sshd takes the file back if sshd cannot do without it.
drop_sshd() { # PATH
	[ -e "$1" ] || return 0
	cp "$1" "$work/sshd"
	rm -f "$1"
	problem=$("$(command -v sshd)" -t 2>&1) || {
		install -m 0644 "$work/sshd" "$1"
		die "without $1 sshd does not take its configuration; the file was put back: $problem" 'sshd -t'
	}
	did "removed $1"
	reload_sshd
}

drop_account() {
	getent passwd kpssh >/dev/null || return 0
	userdel kpssh || die 'the account kpssh cannot be removed' 'end its sessions (pgrep -au kpssh), and run this again'
	did 'removed the account kpssh'
}

drop_directory() { # PATH
	[ -d "$1" ] || return 0
	if rmdir "$1" 2>/dev/null; then
		did "removed $1"
	else
		say "kept $1: it holds what the setup did not put there"
	fi
}

drop_state() {
	[ -d "$state" ] || return 0
	if [ "$purge" = yes ]; then
		rm -rf "$state"
		did "removed $state: if this host comes back, only floors keep it from old scripts"
	else
		say "kept $state: what this host has seen, so that it takes no older script if it comes back (rm -r $state forgets it)"
	fi
}

main() {
	check_host
	open_work
	drop /etc/kpssh/authorized_keys # nobody gets in from here on
	drop_account
	for path in $(files); do
		case $path in
		*/sshd_config.d/*) drop_sshd "$path" ;;
		*) drop "$path" ;;
		esac
	done
	drop_directory /etc/kpssh
	drop_directory /opt/kpssh
	if [ -d /run/kpssh ]; then
		rm -rf /run/kpssh
		did 'removed /run/kpssh'
	fi
	drop_state
	rm -f /run/hostwarrant.lock /run/hostwarrant.reload-sshd
	if [ "$changed" = 0 ]; then
		say 'nothing to remove'
	else
		say "$(many "$changed" change): nothing else of the setup is left"
	fi
}

main "$@"
