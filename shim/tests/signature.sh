# Who signed which bytes: code 2 and 13.

# fixed sends the script that the crafted signatures are over.
fixed() { # NAME of the signature
	cp "$FIXTURES/fixed" script
	cp "$FIXTURES/$1.sig" sig
	: >params
	run join
}

trust() { # KEY…
	for key; do
		printf 'kpssh %s\n' "$(cat "$FIXTURES/$key.pub")" >>/etc/kpssh/allowed_signers
	done
}

test_an_unsigned_script_is_refused() {
	: >sig
	run join
	answers 2 'not signed'
}

test_a_wrong_key_is_refused() {
	sign mallory
	run join
	answers 2 '0 of the 1 signatures'
}

test_another_namespace_is_refused() {
	NAMESPACE='file' sign alice
	run join
	answers 2 'not in this namespace'
	trust gail
	fixed namespace
	answers 2 'not in this namespace'
}

test_a_signer_listed_for_another_principal_is_refused() {
	sed 's/^kpssh/join@tls-x/' /etc/kpssh/allowed_signers >list
	cp list /etc/kpssh/allowed_signers
	run join
	answers 2
}

test_altered_bytes_are_refused() {
	cp script good
	sed 's/joined/Joined/' good >script
	run join
	answers 2
	truncate -s -1 script
	run join
	answers 2
	cp good script
	truncate -s -1 script
	run join
	answers 2
	sed 's/$/\r/' good >script
	run join
	answers 2
	{
		cat good
		echo
	} >script
	run join
	answers 2
	cp good script
	run join
	answers 0
}

test_a_revoked_key_is_13() {
	sign rita
	run join
	answers 13 revoked
	cp "$FIXTURES/revoked.krl" /etc/kpssh/revoked_keys
	run join
	answers 13 revoked
	sign alice
	run join
	answers 0
}

test_a_revoked_key_over_other_bytes_is_2() {
	sign rita
	echo : >>script
	run join
	answers 2
}

test_a_revocation_list_that_nobody_can_read_is_23() {
	for junk in 'SHA256:abc' 'ssh-ed25519 junk' 'SSHKRL'; do
		printf '%s\n' "$junk" >/etc/kpssh/revoked_keys
		run join
		answers 23 'neither a KRL nor a list'
	done
	printf '# nothing yet\n\n' >/etc/kpssh/revoked_keys
	run join
	answers 0
	: >/etc/kpssh/revoked_keys
	run join
	answers 0
}

test_a_missing_signer_list_is_2_and_says_verify() {
	rm /etc/kpssh/allowed_signers
	run join
	answers 2 'kpssh-shim: verify: '
}

test_an_empty_signer_list_is_2() {
	: >/etc/kpssh/allowed_signers
	run join
	answers 2
}

test_armor_is_the_blocks_and_nothing_else() {
	cp sig good
	for change in '1i\
text' '$a\
text' '1i\
' '$a\
' '2i\
' '1s/^/ /' 's/$/\r/' '$s/$/ /' '$d' '1d' '2,$d' '2s/^./!/' '2s/^.//' '2s/$/ /'; do
		sed "$change" good >sig
		run join
		answers 2
	done
	# what stands for "inside a block" in the shim is nothing that a line can say
	for change in '1i\
+text' '$a\
+text' '$a\
+-----END SSH SIGNATURE-----' '$a\
+:-----END SSH SIGNATURE-----' '1i\
+:AAAA'; do
		sed "$change" good >sig
		run join
		answers 2 'text outside the signature blocks'
	done
	sed '$s/$/=====/' good >sig
	run join
	answers 2 'lines of 70'
	sed '$a\
text' good >sig
	run join
	answers 2 'text outside'
	sed '$d' good >sig
	run join
	answers 2 'without its END line'
	sed '2i\
' good >sig
	run join
	answers 2 'outside the signature blocks'
	{
		cat good
		printf '\0'
	} >sig
	run join
	answers 2 'NUL'
	cp good sig
	truncate -s -1 sig
	run join
	answers 0
}

test_cut_base64_in_the_armor_is_refused() {
	sed '3s/....$//' sig >short
	cp short sig
	run join
	answers 2
}

test_a_mebibyte_of_junk_as_armor_is_refused() {
	head -c 1048576 /dev/urandom >sig
	run join
	answers 4
	head -c 16384 /dev/zero | tr '\0' A >sig
	run join
	answers 2
}

test_ecdsa_and_rsa_3072_are_accepted() {
	trust ecdsa rsa3072
	for key in ecdsa rsa3072; do
		sign "$key"
		run join
		answers 0
	done
}

test_rsa_below_3072_is_refused() {
	trust rsa2048
	sign rsa2048
	ssh-keygen -Y verify -f /etc/kpssh/allowed_signers -I kpssh -n kpssh -s sig <script >said || fail 'ssh-keygen is as strict now'
	run join
	answers 2 'below 3072'
}

test_dsa_is_refused() {
	ssh-keygen -q -t dsa -N '' -f dsa 2>/dev/null || { echo 'SKIP: this ssh-keygen has no DSA' && exit 0; }
	printf 'kpssh %s\n' "$(cat dsa.pub)" >>/etc/kpssh/allowed_signers
	ssh-keygen -Y sign -q -n kpssh -f dsa <script >sig
	run join
	answers 2 'type of the key'
}

test_crafted_signatures_that_ssh_keygen_takes_are_refused() {
	trust gail
	fixed good
	answers 0
	while read -r name sentence; do
		fixed "$name"
		answers 2 "$sentence"
	done <<-'L'
		version0 not an SSHSIG of version 1
		reserved reserved field
		sha1hash hashes with neither sha256 nor sha512
		after 0 of the 1
		within 0 of the 1
		plus_l not reduced
		cutlength 0 of the 1
		cutstring 0 of the 1
		narrow lines of 70
		empty lines of 70
	L
}

test_a_security_key_counts_only_when_touched() {
	trust skye webb
	fixed touched
	answers 0
	for name in untouched verified_untouched; do
		fixed "$name"
		ssh-keygen -Y verify -f /etc/kpssh/allowed_signers -I kpssh -n kpssh -s sig <script >said || fail 'ssh-keygen is as strict now'
		answers 2 'not touched'
	done
	fixed shortcounter
	answers 2
}

test_webauthn_is_refused() {
	trust webb
	fixed webauthn
	ssh-keygen -Y verify -f /etc/kpssh/allowed_signers -I kpssh -n kpssh -s sig <script >said || fail 'the crafted signature is not a good one'
	answers 2 'algorithm is not accepted'
}

test_a_certificate_needs_a_cert_authority_line() {
	sign cert-cert.pub
	run join
	answers 2 '0 of the 1'
	printf 'kpssh cert-authority %s\n' "$(cat "$FIXTURES/ca.pub")" >>/etc/kpssh/allowed_signers
	run join
	answers 0
	sign carol
	run join
	answers 2 '0 of the 1'
}

test_certificates_that_ssh_keygen_takes_are_refused() {
	printf 'kpssh cert-authority %s\nkpssh cert-authority %s\n' "$(cat "$FIXTURES/ca.pub")" "$(cat "$FIXTURES/rsa3072.pub")" >>/etc/kpssh/allowed_signers
	while read -r name verdict sentence; do
		sign "$name-cert.pub"
		run join
		answers "$verdict" "$sentence"
	done <<-'L'
		cert_rsaca 0
		cert_sha1 2 SHA-2
		cert_option 2 critical options
		cert_forever 2 without an end
		cert_twice 2 says things twice
		cert_other 2 0 of the 1
		cert_old 2 0 of the 1
		rsa2048 2 below 3072
	L
}

test_a_certificate_pasted_as_a_key_is_refused() {
	trust cert_old-cert
	sign cert_old-cert.pub
	ssh-keygen -Y verify -f /etc/kpssh/allowed_signers -I kpssh -n kpssh -s sig <script >said || fail 'ssh-keygen is as strict now'
	run join
	answers 2 'lists a certificate as a key'
}

test_a_threshold_counts_distinct_keys() {
	printf 'threshold-join=2\n' >>/etc/kpssh/shim.conf
	run join
	answers 2 '1 of the 2'
	sign alice alice
	run join
	answers 2 '1 of the 2'
	sign alice mallory
	run join
	answers 2 '1 of the 2'
	sign alice rita
	run join
	answers 13
	sign alice bob
	run join
	answers 0
	sign mallory bob alice
	run join
	answers 0
	sign alice
	run leave
	answers 0
}

test_a_key_listed_twice_counts_once() {
	printf 'threshold-join=2\n' >>/etc/kpssh/shim.conf
	trust alice
	sign alice alice
	run join
	answers 2 '1 of the 2'
}

test_more_than_eight_blocks_are_refused() {
	cat sig sig sig sig sig sig sig sig >eight
	cp eight sig
	run join
	answers 0
	sign alice
	cat eight sig >nine
	cp nine sig
	run join
	answers 2 'more than 8'
}

test_an_answer_of_ssh_keygen_that_names_no_key_counts_for_nothing() {
	printf '#!/bin/sh\necho Good\n' >fake
	chmod 755 fake
	mount --bind fake /usr/bin/ssh-keygen
	run join
	answers 2 '0 of the 1'
}

test_an_old_ssh_keygen_is_23() {
	printf '#!/bin/sh\necho "unknown option -- Y" >&2\nexit 1\n' >fake
	chmod 755 fake
	mount --bind fake /usr/bin/ssh-keygen
	run join
	answers 23 'OpenSSH 8.2'
	chmod 644 fake
	run join
	answers 23
}

test_the_public_vectors_are_refused_or_not_ours() {
	[ -n "$CORPUS" ] || { echo 'SKIP: no public vectors beside this checkout' && exit 0; }
	vectors=$CORPUS/openssh/regress/unittests/sshsig/testdata
	cp "$vectors/signed-data" script
	for name in rsa ecdsa ed25519 ecdsa_sk ed25519_sk ecdsa_sk_webauthn mldsa44-ed25519; do
		[ -e "$vectors/$name.pub" ] || continue
		printf 'kpssh %s\n' "$(cat "$vectors/$name.pub")" >>/etc/kpssh/allowed_signers
		cp "$vectors/$name.sig" sig
		run join
		answers 2 'not in this namespace'
	done
	# the namespace is all that is wrong with those on the list of algorithms
	sed "s/\"\$work.script\" kpssh /\"\$work.script\" unittest /; s/^\tkpssh) frame=.*/\tunittest) frame='00 00 00 08 75 6e 69 74 74 65 73 74' ;;/" "$SHIM" >shim.new
	cat shim.new >"$SHIM"
	while read -r name verdict; do
		cp "$vectors/$name.sig" sig
		run join
		[ "$code" -ne 2 ] || [ "$verdict" = refuse ] || fail "$name is refused"
		[ "$verdict" = accept ] || answers 2
	done <<-'L'
		rsa accept
		ecdsa accept
		ed25519 accept
		ecdsa_sk accept
		ed25519_sk accept
		ecdsa_sk_webauthn refuse
		mldsa44-ed25519 refuse
	L
}
