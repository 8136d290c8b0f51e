# Root statements change what a host trusts. Codes 0, 2, 4, 12, 15, 17, 20 to 22.

# statement KIND SERIAL BODY [PLACE] [ISSUED]: writes one, signed by both roots.
statement() {
	printf 'hostwarrant-statement: v1 %s\nserial %s\nissued %s\n%s\n%s\nend\n' "$1" "$2" "${5-$NOW}" "${4-cluster prod-1}" "$3" >statement
	by root1 root2
}

by() { # KEY…
	: >statement.sig
	for key; do
		ssh-keygen -Y sign -q -n hostwarrant-statement -f "$FIXTURES/$key" <statement >>statement.sig 2>/dev/null
	done
}

deliver() {
	printf 'kpssh-envelope: 1\nphase: statement\nstatement-b64: %s\nstatement-sig-b64: %s\n' "$(b64 statement)" "$(b64 statement.sig)" >envelope
	shim <envelope
}

taken() {
	deliver
	answers 0
	[ ! -s out ] || fail 'a statement prints nothing'
}

spurned() { # CODE TEXT: refused, and nothing has changed
	state >state.before
	deliver
	answers "$@"
	state >state.after
	cmp -s state.before state.after || fail "a refused statement changed the host: $(diff state.before state.after)"
}

key() { # NAME
	cut -d ' ' -f 1,2 "$FIXTURES/$1.pub"
}

print_of() { # NAME
	ssh-keygen -lf "$FIXTURES/$1.pub" | cut -d ' ' -f 2
}

signers_body() { # EXPIRES NAME…
	printf 'expires %s\nmax-validity 30d\nthreshold install 1\nthreshold join 2\nthreshold leave 1\nthreshold uninstall 1' "$1"
	shift
	for who; do
		printf '\nsigner install@*,join@*,leave@*,uninstall@* namespaces="kpssh" %s' "$(key "$who")"
	done
}

test_signers_are_replaced_with_their_limits() {
	held
	ran join
	statement signers 1 "$(signers_body $((NOW + 10 * DAY)) bob carol)"
	taken
	refused 2 '0 of the 2' join
	warrant by='bob carol'
	ran join
	warrant serial=43 after=$((NOW + 31 * DAY)) by='bob carol'
	refused 18 'more than 30 days ahead' join
	at $((NOW + 10 * DAY))
	warrant serial=43 by='bob carol'
	refused 18 "list of signers ended at $((NOW + 10 * DAY))" join
	statement signers 2 "$(signers_body $((NOW + 20 * DAY)) bob carol)"
	taken
	ran join
}

test_a_statement_again_changes_nothing_and_an_older_one_is_20() {
	held
	statement floor 5 'floor tls-* 43'
	taken
	state >before
	taken
	state >after
	cmp -s before after || fail 'the same statement changed the host'
	statement floor 5 'floor tls-* 1'
	spurned 21 'serial 5 is that of another'
	statement floor 4 'floor tls-* 1'
	spurned 20 'is not above 5'
	refused 20 'floor (43)' join
	statement revoke 1 "revoke $(print_of bob)"
	taken
}

test_revocation_reaches_the_last_signer() {
	held
	ran join
	: >/etc/kpssh/revoked_keys
	prints=$(for who in alice bob carol rita; do print_of $who; done | sort)
	statement revoke 1 "revoke $(print_of bob)"
	taken
	warrant by=bob
	refused 13 revoked join
	warrant
	ran join
	statement revoke 2 "$(printf '%s\n' "$prints" | sed 's/^/revoke /')"
	taken
	refused 13 revoked join
	ssh-keygen -Q -f /etc/kpssh/revoked_keys "$FIXTURES/mallory.pub" >/dev/null || fail 'revokes a key that is not named'
	statement revoke 3 "revoke $(print_of bob)"
	taken
	ran join
}

test_a_floor_replaces_the_set_and_lowers_no_mark() {
	held
	ran join
	statement floor 1 "floor other 1${LF}floor tls-* 50"
	taken
	printf 'other 1\ntls-* 50\n' | cmp -s - /etc/kpssh/floors || fail 'not the floors'
	refused 20 'floor (50)' join
	statement floor 2 'floor other 1'
	taken
	warrant serial=41
	refused 20 'below the mark (42)' join
	warrant serial=43
	ran join
}

test_a_reset_is_for_once() {
	held
	warrant serial=900
	ran join
	warrant serial=41
	refused 20 'below the mark (900)' join
	statement reset 1 "profile tls-a${LF}mark 41${LF}sha256 join $(digest script)"
	taken
	mark tls-a "serial 41${LF}join $(digest script)"
	ran join
	warrant serial=41 body='echo other'
	refused 21 'another join script' join
	warrant serial=42
	ran join
	taken
	mark tls-a "serial 42${LF}join $(digest script)"
	# whatever makes the host look at its statements again does not lower the mark
	printf '# by hand\n' >>/etc/kpssh/floors
	statement floor 1 'floor tls-* 1'
	taken
	printf '* 0\n' >/etc/kpssh/floors
	ran join
	mark tls-a "serial 42${LF}join $(digest script)"
	[ "$(cat /etc/kpssh/floors)" = 'tls-* 1' ] || fail 'the floors are not those of the statement'
}

test_roots_go_link_by_link_with_both_thresholds() {
	held
	statement roots 2 "threshold 2${LF}key $(key root2)${LF}key $(key root3)"
	spurned 2 '1 of the 2 signatures needed are by the roots that the statement names'
	by root2 root3
	spurned 2 '1 of the 2'
	by root1 root2 root3
	taken
	statement floor 1 'floor tls-* 1'
	spurned 2 '1 of the 2'
	by root3 root2
	taken
	statement roots 4 "threshold 1${LF}key $(key root3)"
	by root2 root3
	spurned 20 'the next is 3'
	statement roots 3 "threshold 1${LF}key $(key root3)"
	by root2 root3
	taken
	statement floor 2 'floor tls-* 2'
	by root3
	taken
	statement roots 2 "threshold 1${LF}key $(key root1)"
	by root1 root3
	spurned 20 'is not above 3'
	statement roots 4 "threshold 2${LF}key $(key root1)"
	by root1 root3
	spurned 4 'not a statement'
}

test_who_signed_and_how_often() {
	held
	statement floor 1 'floor tls-* 1'
	by root1
	spurned 2 '1 of the 2'
	by root1 root1
	spurned 2 '1 of the 2'
	by alice bob
	spurned 2 '0 of the 2'
	by root1 alice
	spurned 2 '1 of the 2'
	by root1 root2
	sed -i 's/tls-\* 1/tls-* 2/' statement
	spurned 2 '0 of the 2'
	sed -i 's/tls-\* 2/tls-* 1/' statement
	ssh-keygen -Y sign -q -n kpssh -f "$FIXTURES/root3" <statement >>statement.sig 2>/dev/null
	spurned 2 'not in this namespace'
	by root1 root2
	printf 'root-threshold=1\n' >>/etc/kpssh/shim.conf
	by root2
	taken
	by root1 root1 root1 root1 root1 root1 root1 root1 root1 root1 root1 root1 root1 root1 root1 root1 root1
	spurned 2 'more than 16'
}

test_a_host_without_roots_takes_no_statement() {
	held
	statement floor 1 'floor tls-* 1'
	: >/etc/kpssh/root_signers
	spurned 2 'takes no statements'
	rm /etc/kpssh/root_signers
	spurned 2 'takes no statements'
}

test_a_statement_for_elsewhere_is_15() {
	held
	for place in 'cluster prod-2' "cluster prod-1${LF}target class other" 'target class other' "target host $(print_of bob)"; do
		statement floor 1 'floor tls-* 1' "$place"
		spurned 15 'another cluster, class or host'
	done
	serial=0
	for place in 'target any' "cluster prod-1${LF}target class bm" "target class other${LF}target class bm"; do
		serial=$((serial + 1))
		statement floor $serial 'floor tls-* 1' "$place"
		taken
	done
}

test_a_statement_from_the_future_is_17_but_for_a_clock_that_was_reset() {
	held
	ran join
	statement floor 1 'floor tls-* 1' 'cluster prod-1' $((NOW + DAY + 1))
	spurned 17 'it is for'
	statement floor 1 'floor tls-* 1' 'cluster prod-1' 4070908800
	spurned 17 'it is for'
	statement floor 1 'floor tls-* 1' 'cluster prod-1' $((NOW + DAY))
	taken
	[ "$(cat /var/lib/hostwarrant/time-floor)" = $((NOW + DAY)) ] || fail 'the floor did not rise'
	at 100
	statement floor 2 'floor tls-* 2' 'cluster prod-1' $((NOW + 91 * DAY + 1))
	spurned 17 'it is for'
	statement floor 2 'floor tls-* 2' 'cluster prod-1' $((NOW + 91 * DAY))
	taken
	[ "$(cat /var/lib/hostwarrant/time-floor)" = $((NOW + 91 * DAY)) ] || fail 'the floor did not rise'
}

test_a_statement_is_delivered_alone() {
	held
	statement floor 1 'floor tls-* 1'
	deliver
	for field in script sig; do
		printf '%s-b64: eA==\n' $field | cat - envelope >envelope2
		shim <envelope2
		answers 4 'takes no script'
	done
	for field in statement statement-sig; do
		grep -v "^$field-b64" envelope >envelope2
		shim <envelope2
		answers 4 "field $field-b64 missing"
	done
	head -c 65537 /dev/zero | tr '\0' a >statement
	spurned 4 'statement of 65537 bytes'
}

test_what_is_no_statement_is_4() {
	held
	for edit in 's/^serial 1/serial 01/' 's/^cluster.*/cluster any/' 's/floor tls/floor TLS/' 's/$/ /' '2d' '$d' '$a\
end' 's/v1 floor/v1 floors/' 's/v1 floor/v1 reset/'; do
		statement floor 1 'floor tls-* 1'
		sed -i -e "$edit" statement
		by root1 root2
		spurned 4 'not a statement'
	done
	statement floor 1 "floor tls-b 1${LF}floor tls-a 1"
	spurned 4 'not a statement'
	statement floor 1 'floor tls-* 1'
	taken
}

test_trust_files_follow_the_kept_statements() {
	held
	statement signers 1 "$(signers_body $((NOW + 100 * DAY)) bob carol)"
	taken
	statement roots 2 "threshold 1${LF}key $(key root3)"
	by root1 root2 root3
	taken
	warrant by='bob carol'
	ran join
	# the image is put back, the disk lost a file, a shim was killed before it was done
	cp /etc/kpssh/allowed_signers rendered
	for damage in 'printf "join@* namespaces=\"kpssh\" %s\n" "$(key mallory)" >/etc/kpssh/allowed_signers' 'rm /etc/kpssh/allowed_signers' 'rm /var/lib/hostwarrant/statements/rendered' ': >/var/lib/hostwarrant/statements/rendered'; do
		eval "$damage"
		ran join
		cmp -s rendered /etc/kpssh/allowed_signers || fail "not made again after: $damage"
	done
	warrant by='mallory bob'
	refused 2 '1 of the 2' join
}

test_two_writers_take_turns() {
	held
	set_constant LOCK_SECONDS 1
	: >/var/lib/hostwarrant/lock
	(
		exec 7</var/lib/hostwarrant/lock
		flock 7
		sleep 30
	) &
	until_true sh -c '! flock -n /var/lib/hostwarrant/lock true'
	statement floor 1 'floor tls-* 1'
	spurned 12 'another shim is writing'
	refused 12 'another shim is writing' join
	kill $!
}

test_a_damaged_statement_is_22() {
	held
	statement signers 1 "$(signers_body $((NOW + 100 * DAY)) bob carol)"
	taken
	warrant by='bob carol'
	ran join
	cp /var/lib/hostwarrant/statements/signers good
	for damage in ': >FILE' 'head -c 100 good >FILE' 'sed s/expires/expired/ good >FILE' 'printf "\n" >>FILE'; do
		eval "$(printf %s "$damage" | sed s,FILE,/var/lib/hostwarrant/statements/signers,)"
		refused 22 'statements/signers is damaged' join
	done
	cp good /var/lib/hostwarrant/statements/signers
	ran join
}
