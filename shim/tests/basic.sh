test_a_signed_script_runs_with_its_parameters() {
	run join
	answers 0
	says 'joined node-1'
	[ ! -s err ] || fail 'stderr is not empty'
	run join $ID
	answers 0
	grep -q kpssh-trailer out || fail "no trailer"
}
