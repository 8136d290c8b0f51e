# --- setting up -------------------------------------------------------------

state=/var/lib/hostwarrant
reload_due=/run/hostwarrant.reload-sshd
count=0
kept=0
missing=

check_host() {
	check_caller
	for tool in useradd usermod getent sudo visudo sshd ssh ssh-keygen flock setsid logger bash sha256sum base64 install cmp stat sync; do
		command -v "$tool" >/dev/null || missing="$missing $tool"
	done
	[ -z "$missing" ] || die "these programs are missing:$missing" 'apt-get install openssh-server openssh-client sudo bash coreutils diffutils util-linux bsdutils passwd'
	version=$(ssh -V 2>&1)
	release=${version#OpenSSH_}
	major=${release%%.*} minor=${release#*.}
	minor=${minor%%[!0-9]*}
	case $major$minor in '' | *[!0-9]*) die "this is no OpenSSH: $version" ;; esac
	[ "$major" -gt 8 ] || { [ "$major" -eq 8 ] && [ "$minor" -ge 2 ]; } || die "OpenSSH 8.2 or newer is needed, this is $version" 'upgrade openssh'
	[ "$(stat -f -c %T /run)" = tmpfs ] || die '/run is not on a tmpfs: secrets of a run would stay on a disk' 'mount a tmpfs on /run'
}

stage() { # PATH MODE SHA256 STATEMENT
	take cat "$@"
}

stage_base64() {
	take decode "$@"
}

decode() { base64 -d; }

# take keeps the content of a file, and looks at it as far as it can be looked at
# before it is in its place.
take() { # READER PATH MODE SHA256 STATEMENT
	count=$((count + 1))
	"$1" >"$work/$count"
	[ "$(sha256sum <"$work/$count")" = "$4  -" ] || die "the content of $2 is damaged in this script" 'copy the script again'
	printf '%s %s %s %s\n' "$count" "$3" "$5" "$2" >>"$work/list"
	case $2 in
	*/sudoers.d/*) visudo -cqf "$work/$count" >&2 || die "visudo does not take $2" ;;
	*/sshd_config.d/*) check_sshd "$work/$count" ;;
	esac
}

# sshd_says runs sshd -t, or another of its checks. A host on which it never ran
# lacks a directory, which its service would make.
sshd_says() {
	problem=$("$(command -v sshd)" "$@" 2>&1 >"$work/says") && return
	case $problem in 'Missing privilege separation directory: '*)
		install -d -m 755 "${problem#*: }"
		problem=$("$(command -v sshd)" "$@" 2>&1 >"$work/says") && return
		;;
	esac
	return 1
}

check_sshd() { # STAGED
	sshd_says -t || die "sshd does not take its present configuration, before anything was changed: $problem" 'sshd -t'
	printf 'Include %s\nInclude /etc/ssh/sshd_config\n' "$1" >"$work/sshd_config"
	sshd_says -t -f "$work/sshd_config" || die "sshd does not take the new configuration: $problem"
}

# --- putting in place -------------------------------------------------------

directory() { # PATH MODE
	if [ -L "$1" ] || { [ -e "$1" ] && [ ! -d "$1" ]; }; then
		die "$1 is in the way: it is no directory" "look at it, and remove it"
	fi
	if [ ! -d "$1" ]; then
		install -d -o root -g root -m "$2" "$1"
		did "made $1"
	elif [ "$(stat -c '%a %u %g' "$1")" != "$2 0 0" ]; then
		chown root:root "$1"
		chmod "$2" "$1"
		did "made $1 root's, mode $2"
	fi
}

# account makes the login: a shell that reads no file of anybody's, no password
# that anybody could have ("*"; "!" would be a closed account to an sshd without
# PAM), the shim's directory as a home that it cannot write, no other group.
account() {
	entry=$(getent passwd kpssh) || entry=
	if [ -z "$entry" ]; then
		group=--user-group
		! getent group kpssh >/dev/null || group='--no-user-group --gid kpssh'
		# shellcheck disable=SC2086 # one word or three
		useradd --system $group --no-create-home --home-dir /opt/kpssh --shell /bin/sh --password '*' --comment 'hostwarrant relay' kpssh
		did 'made the account kpssh'
		return
	fi
	IFS=: read -r _ _ uid _ _ home shell <<-ENTRY
		$entry
	ENTRY
	[ "$uid" != 0 ] || die 'the account kpssh is root under another name' 'remove it, and not with userdel, which takes it for root: sed -i /^kpssh:/d /etc/passwd /etc/shadow'
	if [ "$home:$shell" != /opt/kpssh:/bin/sh ]; then
		usermod --home /opt/kpssh --shell /bin/sh kpssh || die 'the account kpssh cannot be changed' 'end its sessions: pgrep -au kpssh'
		did 'gave the account kpssh the shell /bin/sh and the home /opt/kpssh'
	fi
	if [ "$(getent shadow kpssh | cut -d : -f 2)" != '*' ]; then
		usermod --password '*' kpssh
		did 'took the password of the account kpssh'
	fi
	if [ "$(id -G kpssh)" != "$(id -g kpssh)" ]; then
		others=$(id -Gn kpssh)
		usermod --groups '' kpssh
		did "took the account kpssh out of other groups than its own ($others)"
	fi
}

is_right() { # STAGED MODE PATH
	[ -f "$3" ] && [ ! -L "$3" ] && cmp -s "$work/$1" "$3" && [ "$(stat -c '%a %u %g' "$3")" = "$2 0 0" ]
}

# replace puts a file in its place whole and on disk, or not at all.
replace() { # FROM MODE PATH
	[ -d "${3%/*}" ] || install -d -m 755 "${3%/*}"
	new=${3%/*}/.${3##*/}.hostwarrant
	install -o root -g root -m "$2" "$1" "$new"
	sync "$new"
	mv -fT "$new" "$3"
	sync "${3%/*}"
}

switch_all() {
	while read -r number mode statement path <&3; do
		if [ "$statement" = seed ]; then
			[ -e "$path" ] || switch
			continue
		fi
		if [ "$statement" != - ] && [ -e "$state/statements/$statement" ]; then
			kept=$((kept + 1))
			say "kept $path: this host has accepted a $statement statement, which says what is in it"
			continue
		fi
		case $path in
		*/sudoers.d/*) switch_sudoers ;;
		*/sshd_config.d/*) switch_sshd ;;
		*) switch ;;
		esac
	done 3<"$work/list"
}

switch() {
	is_right "$number" "$mode" "$path" && return
	replace "$work/$number" "$mode" "$path"
	did "wrote $path"
}

# put_back undoes a switch that turned out wrong.
put_back() { # OLD
	if [ -e "$1" ]; then
		replace "$1" "$mode" "$path"
	else
		rm -f "$path"
	fi
}

keep_old() {
	rm -f "$work/old"
	[ ! -f "$path" ] || cp "$path" "$work/old"
}

switch_sudoers() {
	keep_old
	switch
	visudo -cq >&2 || {
		put_back "$work/old"
		die "visudo does not take the host's sudoers with $path, which was put back" 'visudo -c'
	}
	sudo -n -l -U kpssh | grep -qF '(root) NOPASSWD: /opt/kpssh/kpssh-shim ""' ||
		die "sudo does not read $path" 'add "@includedir /etc/sudoers.d" to /etc/sudoers, with visudo'
}

# switch_sshd leaves sshd with the old file, and unreloaded, unless sshd itself
# says that the new one is sound and in force for the account.
switch_sshd() {
	keep_old
	if ! is_right "$number" "$mode" "$path"; then
		: >"$reload_due" # a run that is cut short here is made good by the next
		switch
	fi
	if ! sshd_says -t || ! sshd_says -T -C "user=kpssh,host=relay,addr=$login_address"; then
		put_back "$work/old"
		die "sshd does not take $path, which was put back: $problem" 'sshd -t'
	fi
	unpinned=$(pinned | grep -vxF -f "$work/says") || :
	if [ -n "$unpinned" ]; then
		put_back "$work/old"
		die "with $path sshd still does not say \"${unpinned%%
*}\" for the user kpssh; the file was put back" 'it needs "Include /etc/ssh/sshd_config.d/*.conf" on top of /etc/ssh/sshd_config, and no Match block before it that holds for kpssh'
	fi
	# What a hand changed and did not load is not in force, whatever the files say.
	if [ -e "$reload_due" ] || unread_sshd; then
		reload_sshd
	fi
	rm -f "$reload_due"
}

clear_absent() {
	for path in $(absent); do
		if [ -e "$path" ] || [ -L "$path" ]; then
			rm -f "$path"
			did "removed $path, which the policy says nothing for"
		fi
	done
}

main() {
	check_host
	open_work
	: >"$work/list"
	files
	directories
	account
	switch_all
	clear_absent
	if [ "$changed" = 0 ]; then
		say "nothing to change: this host is as $policy says"
	else
		say "$(many "$changed" change): this host is as $policy says now"
	fi
	[ "$kept" = 0 ] || say "$(many "$kept" file) kept as accepted statements say, not as this policy does"
}

# A copy of this script that was cut short does nothing.
main "$@"
