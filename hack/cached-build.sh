# shellcheck shell=sh
# What scripts share that build slow things from source once: sourced, not run. Progress goes to
# stderr, since a cold build takes minutes and must not look hung.

# shellcheck disable=SC2034 # for who sources this
cached_root=${HOSTWARRANT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hostwarrant}

# cached_build TITLE DIR WHAT prints DIR. Where it is not there yet, it calls the function build,
# which fills $work/bin and writes what the compiler says to $work/log, and moves that to DIR
# when it succeeded: no reader sees half of it.
cached_build() {
	if [ ! -d "$2" ]; then
		cached_fill "$@"
	fi
	echo "$2"
}

cached_fill() {
	title=$1 dir=$2 what=$3
	mkdir -p "$(dirname "$dir")"
	exec 9>"$(dirname "$dir")/lock"
	flock 9 # two builds at once would only slow each other down
	[ ! -d "$dir" ] || return 0
	work=$(mktemp -d "$dir.XXXXXX")
	progress=
	trap cached_end EXIT
	trap 'exit 130' INT TERM
	echo "$title: building $what into $dir (a few minutes, once)" >&2
	: >"$work/log"
	(
		exec 9>&-
		while sleep 20; do echo "$title: $(wc -l <"$work/log") packages compiled" >&2; done
	) >&2 &
	progress=$!
	build || {
		tail -n 20 "$work/log" >&2
		exit 1
	}
	mv "$work/bin" "$dir"
}

cached_end() {
	[ -z "$progress" ] || kill "$progress" 2>/dev/null || :
	rm -rf "$work"
}
