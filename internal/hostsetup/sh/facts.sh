# Prints what is so on this host, for "hostwarrant host check" and "host repair".
# It changes nothing. Passwords and private keys are not read.

set -uf
PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
export PATH LC_ALL

trust=/etc/kpssh
state=/var/lib/hostwarrant
max=1048576

# entry: type and mode in hex, owner, group. What is not there has no line.
entry() { # PATH
	stat -c 'entry %f %u %g %n' -- "$1" 2>/dev/null
}

content() { # PATH
	entry "$1" || return 0
	[ -f "$1" ] && [ ! -L "$1" ] || return 0
	[ "$(stat -c %s -- "$1")" -le $max ] || return 0
	printf 'content %s %s\n' "$1" "$(base64 -w 0 <"$1")"
}

# below: what a directory of the state holds.
below() { # DIRECTORY entry|content
	entry "$1" || return 0
	[ -d "$1" ] || return 0
	set +f
	for path in "$1"/*; do
		case ${path##*/} in
		'*') ;;
		*[!A-Za-z0-9._-]*) printf 'odd %s\n' "$1" ;;
		*) "$2" "$path" ;;
		esac
	done
	set -f
}

programs() {
	for tool in ssh-keygen sudo visudo sshd flock setsid logger bash sed grep base64 sha256sum stat sync timeout head tee; do
		command -v "$tool" >/dev/null || printf 'missing %s\n' "$tool"
	done
	printf 'openssh %s\n' "$(ssh -V 2>&1 | head -n 1)"
}

account() {
	line=$(getent passwd kpssh) || return 0
	printf 'passwd %s\n' "$line"
	printf 'groups %s\n' "$(id -Gn kpssh)"
	case $(getent shadow kpssh | cut -d : -f 2) in
	'*') echo 'password impossible' ;;
	'') echo 'password none' ;;
	'!'*) echo 'password locked' ;;
	*) echo 'password set' ;;
	esac
}

# runner: the start time of the process that the run lock names, if it lives.
runner() {
	read -r pid _ 2>/dev/null <$state/running || return 0
	[ -r "/proc/$pid/stat" ] || return 0
	printf 'runner %s\n' "$(sed 's/.*) //' "/proc/$pid/stat" | cut -d ' ' -f 20)"
}

# loaded: when the sshd that listens has read its configuration, as it writes its pid
# file anew each time; and when the parts of that changed. Of a part with a name that
# nothing of ours has, the directory is named.
loaded() {
	pidfile=$("$(command -v sshd || echo sshd)" -T 2>/dev/null | sed -n 's/^pidfile //p')
	read -r pid 2>/dev/null <"$pidfile" || return 0
	[ "$(cat "/proc/$pid/comm" 2>/dev/null)" = sshd ] || return 0
	stat -c 'loaded %.Y %n' -- "$pidfile"
	set +f
	for path in /etc/ssh/sshd_config /etc/ssh/sshd_config.d /etc/ssh/sshd_config.d/*.conf; do
		case $path in
		*[!A-Za-z0-9._/-]*) stat -c "changed %.Z ${path%/*}" -- "$path" 2>/dev/null ;;
		*) stat -c 'changed %.Z %n' -- "$path" 2>/dev/null ;;
		esac
	done
	set -f
}

told() { # WORD COMMAND…: each line that it prints, or its fault
	word=$1
	shift
	if said=$("$@" 2>&1); then
		printf '%s\n' "$said" | sed "s/^/$word /"
	else
		printf '%s-fault %s\n' "$word" "$(printf '%s' "$said" | tr '\n' ' ')"
	fi
}

main() {
	[ "$(id -u)" = 0 ] || {
		echo 'this needs root' >&2
		exit 1
	}
	echo 'hostwarrant-facts: v1'
	printf 'time %s\n' "$(date +%s)"
	printf 'boot %s\n' "$(cat /proc/sys/kernel/random/boot_id)"
	programs
	account
	told sshd "$(command -v sshd || echo sshd)" -T -C "user=kpssh,host=relay,addr=$login_address"
	loaded
	told visudo visudo -c
	told sudo sudo -n -l -U kpssh
	for path in /opt/kpssh /etc/kpssh "$state" /run/kpssh; do
		entry "$path"
	done
	entry /opt/kpssh/kpssh-shim && printf 'digest %s\n' "$(sha256sum </opt/kpssh/kpssh-shim)"
	for path in $trust/allowed_signers $trust/revoked_keys $trust/root_signers $trust/cluster $trust/floors $trust/shim.conf \
		$trust/authorized_keys /etc/sudoers.d/kpssh /etc/ssh/sshd_config.d/kpssh.conf $state/time-floor $state/running; do
		content "$path"
	done
	for part in marks statements runs; do
		below "$state/$part" content
	done
	for part in installed repaired; do # scripts may be large; of what was set aside the names alone matter
		below "$state/$part" entry
	done
	runner
	printf 'run %s\n' "$(stat -f -c %T /run/kpssh 2>/dev/null || stat -f -c %T /run)"
	echo end
}

main </dev/null
