package testkit

import (
	"strings"
	"testing"
)

// StatementCase is a text and whether it is a statement of docs/spec/statement.md.
type StatementCase struct {
	Text  string
	Valid bool
}

// Public keys whose private halves were thrown away, and their fingerprints.
const (
	keyA   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFtJhVGpJtfrX72AdfIYpgOLgFIdIanjl+tUUFk6r8qu"
	keyB   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIsT8UDXmRjBaCTgCZnOUWo12VDmjn8EOntM5KRHudDw"
	keyC   = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBBQquQeDCvJFb3FTU+Piq8lRXHb4lIiFLXsogK4F5HEFWu5ntGk7eTtFJ00ooDLF+qt1NQ38XbLur1KKo45mrIQ="
	keyRSA = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC+VjhVBzRL6fiqhPvtxj/vrGvK4gMd3nhIbmiJtMnPYO5p/CToshD4kBr9gogs+gJjDHzL2OnjuYUDKhX4S3OrtyWp8RuabxvH9jm+HFhaLw7zQZjZJ2kZV5bxX6RFjJBMWys0OteKtTUs+jKJa48ILi5q8/WDFQqgicJwR/0fCFw3aXft5lljXgDN42ZRwjyGovQCwQUes2ROuSMObC53Vnzt5k7n7lR44gylqFhEsWyJbVDEq1sVmIdZzIEMPD9oWPADLJFAKeqOKqo6tnA4kl2XLS+lvvEDMYxKzW191p9/7GKscdxi8Kd2Idel1ryL58Y7IxCysfiWeI0155+P"
	printA = "SHA256:99C/ioik3e7hla/Yzm0maHua74gbS6fv/bJjWaB0Wv0"
	printC = "SHA256:XWBhXM3zlZFs+lngr2JztaNqmq0irZ4IDQGM19vM++c"
	printB = "SHA256:mR4hnXoLPXJRRO+VF7mB/ylFffPxWrP5apLMc5jqTnU"
)

// StatementBases is a good statement of each kind.
func StatementBases() map[string]string {
	head := func(kind string) string {
		return "hostwarrant-statement: v1 " + kind + "\nserial 2\nissued 1795000000\ncluster prod-1\n"
	}
	return map[string]string{
		"roots": head("roots") + "threshold 2\nkey " + keyA + "\nkey " + keyC + "\nend\n",
		"signers": head("signers") + "expires 1802776000\nmax-validity 90d\n" +
			"threshold install 1\nthreshold join 2\nthreshold leave 1\nthreshold uninstall 1\n" +
			"signer install@tls-*,join@tls-* namespaces=\"kpssh\" " + keyA + "\n" +
			"signer install@*,join@*,leave@*,uninstall@*,kpssh namespaces=\"kpssh\" " + keyB + "\nend\n",
		"revoke": head("revoke") + "revoke " + printA + "\nrevoke " + printC + "\nend\n",
		"floor":  head("floor") + "floor tls-bootstrap 40\nfloor web-* 1\nend\n",
		"reset": head("reset") + "profile tls-bootstrap\nmark 41\nsha256 install " + strings.Repeat("0a", 32) +
			"\nsha256 join " + strings.Repeat("1b", 32) + "\nend\n",
	}
}

// statementEdit makes a case of a base by replacing the first old with new. With
// old empty, new is the whole text.
type statementEdit struct {
	base, old, new string
	valid          bool
}

// StatementCases are statements and their near misses, for every reader of them.
func StatementCases(t testing.TB) map[string]StatementCase {
	t.Helper()
	bases, cases := StatementBases(), map[string]StatementCase{}
	for kind, text := range bases {
		cases[kind] = StatementCase{text, true}
	}
	for _, edits := range []map[string]statementEdit{goodStatements(), badFrames(), badPlaces(), badRoots(), badSigners(), badLists()} {
		for name, e := range edits {
			if _, twice := cases[name]; twice || !strings.Contains(bases[e.base], e.old) {
				t.Fatalf("case %q: there twice, or %s does not hold %q", name, e.base, e.old)
			}
			text := strings.Replace(bases[e.base], e.old, e.new, 1)
			if e.old == "" {
				text = e.new
			}
			cases[name] = StatementCase{text, e.valid}
		}
	}
	return cases
}

func goodStatements() map[string]statementEdit {
	good := func(base, old, new string) statementEdit { return statementEdit{base, old, new, true} }
	return map[string]statementEdit{
		"serial of 15 digits":        good("roots", "serial 2", "serial 999999999999999"),
		"issued at 0":                good("roots", "issued 1795000000", "issued 0"),
		"for a class of a cluster":   good("signers", "cluster prod-1\n", "cluster prod-1\ntarget class bm-amd64\n"),
		"for a class":                good("signers", "cluster prod-1\n", "target class bm-amd64\n"),
		"for two classes":            good("signers", "cluster prod-1\n", "target class bm-amd64\ntarget class default\n"),
		"for a host":                 good("reset", "cluster prod-1\n", "target host "+printA+"\n"),
		"for a host of a class":      good("reset", "cluster prod-1\n", "target class bm-amd64\ntarget host "+printA+"\n"),
		"for any host":               good("revoke", "cluster prod-1\n", "target any\n"),
		"a class with capitals":      good("revoke", "cluster prod-1\n", "target class Gen_2.x\n"),
		"a cluster by its UID":       good("revoke", "prod-1", "5f3c2a10-7d0e-4a52-9f4e-0c1d2e3f4a5b"),
		"roots: one of two":          good("roots", "threshold 2", "threshold 1"),
		"roots: one":                 good("roots", "threshold 2\nkey "+keyA+"\n", "threshold 1\n"),
		"signers: one":               good("signers", "signer install@tls-*,join@tls-* namespaces=\"kpssh\" "+keyA+"\n", ""),
		"signers: an authority":      good("signers", "join@tls-* namespaces", "join@tls-* cert-authority,namespaces"),
		"signers: one profile":       good("signers", "install@tls-*,join@tls-*", "join@tls-bootstrap"),
		"signers: kpssh alone":       good("signers", "install@tls-*,join@tls-*", "kpssh"),
		"signers: thresholds of 8":   good("signers", "threshold join 2", "threshold join 8"),
		"signers: ten years":         good("signers", "90d", "3650d"),
		"signers: expire at once":    good("signers", "expires 1802776000", "expires 1795000001"),
		"revoke: one":                good("revoke", "revoke "+printC+"\n", ""),
		"revoke: three":              good("revoke", "end\n", "revoke "+printB+"\nend\n"),
		"floor: one":                 good("floor", "floor web-* 1\n", ""),
		"floor: 0":                   good("floor", "web-* 1", "web-* 0"),
		"floor: all":                 good("floor", "floor tls-bootstrap 40\nfloor web-* 1\n", "floor * 7\n"),
		"floor: a profile and its *": good("floor", "floor web-* 1\n", "floor tls-bootstrap* 1\n"),
		"reset: one phase":           good("reset", "sha256 install "+strings.Repeat("0a", 32)+"\n", ""),
		"reset: four phases":         good("reset", "end\n", "sha256 leave "+strings.Repeat("2c", 32)+"\nsha256 uninstall "+strings.Repeat("3d", 32)+"\nend\n"),
		"reset: to 0":                good("reset", "mark 41", "mark 0"),
		"reset: a name of 253":       good("reset", "profile tls-bootstrap", "profile "+strings.Repeat("a", 253)),
	}
}

func badFrames() map[string]statementEdit {
	bad := func(base, old, new string) statementEdit { return statementEdit{base, old, new, false} }
	return map[string]statementEdit{
		"nothing":                       bad("roots", "", ""),
		"a line break":                  bad("roots", "", "\n"),
		"the first line alone":          bad("roots", "", "hostwarrant-statement: v1 roots\n"),
		"only first and last line":      bad("roots", "", "hostwarrant-statement: v1 roots\nend\n"),
		"another version":               bad("roots", "v1", "v2"),
		"no version":                    bad("roots", "v1 ", ""),
		"another name":                  bad("roots", "hostwarrant-statement", "hostwarrant-statements"),
		"a warrant's mark":              bad("roots", "hostwarrant-statement: v1", "#warrant: v1"),
		"no space after the colon":      bad("roots", ": v1", ":v1"),
		"an unknown kind":               bad("roots", "v1 roots", "v1 root"),
		"a kind in capitals":            bad("roots", "v1 roots", "v1 ROOTS"),
		"no kind":                       bad("roots", "v1 roots", "v1"),
		"a comment first":               bad("roots", "hostwarrant", "# roots\nhostwarrant"),
		"a comment inside":              bad("roots", "issued", "# when\nissued"),
		"an empty line":                 bad("roots", "issued", "\nissued"),
		"an empty line at the end":      bad("roots", "end\n", "end\n\n"),
		"no last line break":            bad("roots", "end\n", "end"),
		"CR LF":                         bad("roots", "serial 2\n", "serial 2\r\n"),
		"a tab":                         bad("roots", "serial 2", "serial\t2"),
		"a NUL":                         bad("roots", "prod-1", "prod-1\x00"),
		"a letter beyond ASCII":         bad("roots", "prod-1", "pröd-1"),
		"DEL":                           bad("roots", "prod-1", "prod-1\x7f"),
		"a byte order mark":             bad("roots", "hostwarrant", "\ufeffhostwarrant"),
		"two spaces":                    bad("roots", "serial 2", "serial  2"),
		"a trailing space":              bad("roots", "serial 2", "serial 2 "),
		"a leading space":               bad("roots", "serial 2", " serial 2"),
		"an unknown line":               bad("roots", "issued", "expires 5\nissued"),
		"no serial":                     bad("roots", "serial 2\n", ""),
		"serial twice":                  bad("roots", "serial 2\n", "serial 2\nserial 2\n"),
		"serial without a value":        bad("roots", "serial 2", "serial"),
		"serial 0":                      bad("roots", "serial 2", "serial 0"),
		"serial -1":                     bad("roots", "serial 2", "serial -1"),
		"serial +2":                     bad("roots", "serial 2", "serial +2"),
		"serial 02":                     bad("roots", "serial 2", "serial 02"),
		"serial 0x2":                    bad("roots", "serial 2", "serial 0x2"),
		"serial 2.0":                    bad("roots", "serial 2", "serial 2.0"),
		"serial of 16 digits":           bad("roots", "serial 2", "serial 1000000000000000"),
		"serial with another behind it": bad("roots", "serial 2", "serial 2 3"),
		"Serial in capitals":            bad("roots", "serial 2", "Serial 2"),
		"serial after issued":           bad("roots", "serial 2\nissued 1795000000\n", "issued 1795000000\nserial 2\n"),
		"no issued":                     bad("roots", "issued 1795000000\n", ""),
		"issued as a date":              bad("roots", "1795000000", "2026-11-18T09:06:40Z"),
		"no end":                        bad("roots", "end\n", ""),
		"end twice":                     bad("roots", "end\n", "end\nend\n"),
		"text after end":                bad("roots", "end\n", "end\nserial 3\n"),
		"end with something":            bad("roots", "end\n", "end .\n"),
		"END":                           bad("roots", "end\n", "END\n"),
		"end before the body":           bad("roots", "threshold 2\n", "end\nthreshold 2\n"),
		"two statements":                bad("roots", "end\n", "end\n"+StatementBases()["floor"]),
		"more than 64 KiB":              bad("floor", "floor tls-bootstrap 40\n", strings.Repeat("floor a 1\n", 6600)),
		"more than 1024 lines":          bad("revoke", "revoke "+printA+"\n", strings.Repeat("revoke "+printA+"\n", 1024)),
	}
}

func badPlaces() map[string]statementEdit {
	bad := func(base, old, new string) statementEdit { return statementEdit{base, old, new, false} }
	place := func(new string) statementEdit { return bad("revoke", "cluster prod-1\n", new) }
	return map[string]statementEdit{
		"nowhere":                       place(""),
		"a cluster without a name":      place("cluster\n"),
		"a cluster in capitals":         place("cluster Prod\n"),
		"a cluster with *":              place("cluster prod-*\n"),
		"a cluster of 64 characters":    place("cluster " + strings.Repeat("a", 64) + "\n"),
		"cluster any":                   place("cluster any\n"),
		"two clusters":                  place("cluster prod-1\ncluster prod-2\n"),
		"a cluster with a second word":  place("cluster prod-1 prod-2\n"),
		"a cluster as a target":         place("target cluster prod-1\n"),
		"cluster after target":          place("target class a\ncluster prod-1\n"),
		"target without a kind":         place("target\n"),
		"an unknown target":             place("target rack 7\n"),
		"any beside a class":            place("target any\ntarget class a\n"),
		"any after a class":             place("target class a\ntarget any\n"),
		"any within a cluster":          place("cluster prod-1\ntarget any\n"),
		"any with something":            place("target any host\n"),
		"ANY":                           place("target ANY\n"),
		"a class without a name":        place("target class\n"),
		"a class with *":                place("target class bm-*\n"),
		"a class that starts with a -":  place("target class -bm\n"),
		"a class of 64 characters":      place("target class " + strings.Repeat("a", 64) + "\n"),
		"a class and a second word":     place("target class a b\n"),
		"the same class twice":          place("target class a\ntarget class a\n"),
		"a host without a fingerprint":  place("target host\n"),
		"a host by name":                place("target host pool-1\n"),
		"a host by MD5":                 place("target host MD5:00:11\n"),
		"a host's fingerprint, cut":     place("target host " + printA[:len(printA)-1] + "\n"),
		"a host's fingerprint, padded":  place("target host " + printA + "=\n"),
		"a target that is a line later": bad("revoke", "end\n", "target any\nend\n"),
	}
}

func badRoots() map[string]statementEdit {
	bad := func(old, new string) statementEdit { return statementEdit{"roots", old, new, false} }
	return map[string]statementEdit{
		"roots: no threshold":          bad("threshold 2\n", ""),
		"roots: threshold 0":           bad("threshold 2", "threshold 0"),
		"roots: threshold 3 of 2":      bad("threshold 2", "threshold 3"),
		"roots: threshold 9":           bad("threshold 2", "threshold 9"),
		"roots: no keys":               bad("key "+keyA+"\nkey "+keyC+"\n", ""),
		"roots: a key twice":           bad("key "+keyC, "key "+keyA),
		"roots: a comment":             bad(keyA, keyA+" alice"),
		"roots: a weak key":            bad(keyC, keyRSA),
		"roots: a key of another type": bad("key ssh-ed25519", "key ecdsa-sha2-nistp256"),
		"roots: a key cut short":       bad(keyA, keyA[:len(keyA)-4]),
		"roots: a key in allowed form": bad("key "+keyA, "key root "+keyA),
		"roots: keys before threshold": bad("threshold 2\nkey "+keyA+"\n", "key "+keyA+"\nthreshold 2\n"),
		"roots: a signer beside":       bad("end\n", "signer kpssh namespaces=\"kpssh\" "+keyB+"\nend\n"),
	}
}

func badSigners() map[string]statementEdit {
	bad := func(old, new string) statementEdit { return statementEdit{"signers", old, new, false} }
	return map[string]statementEdit{
		"signers: nobody": bad("signer install@tls-*,join@tls-* namespaces=\"kpssh\" "+keyA+"\n"+
			"signer install@*,join@*,leave@*,uninstall@*,kpssh namespaces=\"kpssh\" "+keyB+"\n", ""),
		"signers: no expiry":           bad("expires 1802776000\n", ""),
		"signers: expired when issued": bad("expires 1802776000", "expires 1795000000"),
		"signers: no validity":         bad("max-validity 90d\n", ""),
		"signers: validity in seconds": bad("90d", "7776000"),
		"signers: validity of 0":       bad("90d", "0d"),
		"signers: validity too long":   bad("90d", "3651d"),
		"signers: validity d":          bad("90d", "d"),
		"signers: no leave":            bad("threshold leave 1\n", ""),
		"signers: join before install": bad("threshold install 1\nthreshold join 2\n", "threshold join 2\nthreshold install 1\n"),
		"signers: unknown phase":       bad("threshold leave 1", "threshold probe 1"),
		"signers: threshold 0":         bad("threshold join 2", "threshold join 0"),
		"signers: threshold 9":         bad("threshold join 2", "threshold join 9"),
		"signers: a signer twice":      bad("end\n", "signer install@*,join@*,leave@*,uninstall@*,kpssh namespaces=\"kpssh\" "+keyB+"\nend\n"),
		"signers: no namespaces":       bad(" namespaces=\"kpssh\"", ""),
		"signers: another namespace":   bad("\"kpssh\"", "\"git\""),
		"signers: two namespaces":      bad("\"kpssh\"", "\"kpssh,git\""),
		"signers: a term":              bad("namespaces=\"kpssh\" "+keyA, "namespaces=\"kpssh\",valid-before=\"20270101Z\" "+keyA),
		"signers: a negated principal": bad("install@tls-*", "!install@tls-*"),
		"signers: a quoted principal":  bad("install@tls-*", "\"install@tls-*\""),
		"signers: a * inside":          bad("join@tls-*", "join@t*s"),
		"signers: a ?":                 bad("join@tls-*", "join@tls-?"),
		"signers: everything by *":     bad("install@tls-*", "*"),
		"signers: every phase by *":    bad("install@tls-*", "*@tls-*"),
		"signers: phase probe":         bad("install@tls-*", "probe@tls-*"),
		"signers: no profile":          bad("install@tls-*", "install@"),
		"signers: an empty principal":  bad("install@tls-*,", "install@tls-*,,"),
		"signers: a comment":           bad(keyA, keyA+" alice"),
		"signers: a weak key":          bad(keyA, keyRSA),
	}
}

func badLists() map[string]statementEdit {
	bad := func(base, old, new string) statementEdit { return statementEdit{base, old, new, false} }
	digest := strings.Repeat("0a", 32)
	return map[string]statementEdit{
		"revoke: nothing":               bad("revoke", "revoke "+printA+"\nrevoke "+printC+"\n", ""),
		"revoke: twice":                 bad("revoke", "revoke "+printC, "revoke "+printA),
		"revoke: out of order":          bad("revoke", "revoke "+printA+"\nrevoke "+printC, "revoke "+printC+"\nrevoke "+printA),
		"revoke: a key":                 bad("revoke", printA, keyA),
		"revoke: a pattern":             bad("revoke", printA, "SHA256:*"),
		"revoke: padded":                bad("revoke", printA, printA+"="),
		"floor: nothing":                bad("floor", "floor tls-bootstrap 40\nfloor web-* 1\n", ""),
		"floor: without a serial":       bad("floor", "floor web-* 1", "floor web-*"),
		"floor: without a profile":      bad("floor", "floor web-* 1", "floor 1"),
		"floor: -1":                     bad("floor", "web-* 1", "web-* -1"),
		"floor: 01":                     bad("floor", "web-* 1", "web-* 01"),
		"floor: two numbers":            bad("floor", "web-* 1", "web-* 1 2"),
		"floor: a * inside":             bad("floor", "web-*", "w*b"),
		"floor: in capitals":            bad("floor", "web-*", "Web-*"),
		"floor: a profile twice":        bad("floor", "floor web-* 1", "floor tls-bootstrap 41"),
		"floor: out of order":           bad("floor", "floor web-* 1", "floor a 1"),
		"reset: no profile":             bad("reset", "profile tls-bootstrap\n", ""),
		"reset: a pattern":              bad("reset", "profile tls-bootstrap", "profile tls-*"),
		"reset: the directory itself":   bad("reset", "profile tls-bootstrap", "profile ."),
		"reset: a directory up":         bad("reset", "profile tls-bootstrap", "profile .."),
		"reset: an option":              bad("reset", "profile tls-bootstrap", "profile -rf"),
		"reset: an empty label":         bad("reset", "profile tls-bootstrap", "profile a..b"),
		"reset: a name of 254":          bad("reset", "profile tls-bootstrap", "profile "+strings.Repeat("a", 254)),
		"reset: two profiles":           bad("reset", "profile tls-bootstrap\n", "profile tls-bootstrap\nprofile web\n"),
		"reset: no mark":                bad("reset", "mark 41\n", ""),
		"reset: mark 041":               bad("reset", "mark 41", "mark 041"),
		"reset: no digest":              bad("reset", "sha256 install "+digest+"\nsha256 join "+strings.Repeat("1b", 32)+"\n", ""),
		"reset: a short digest":         bad("reset", digest, digest[2:]),
		"reset: a digest in capitals":   bad("reset", digest, strings.ToUpper(digest)),
		"reset: a digest with its name": bad("reset", digest, "sha256:"+digest),
		"reset: phases out of order":    bad("reset", "end\n", "sha256 install "+digest+"\nend\n"),
		"reset: a phase twice":          bad("reset", "sha256 join "+strings.Repeat("1b", 32)+"\n", "sha256 install "+digest+"\n"),
		"reset: an unknown phase":       bad("reset", "sha256 join", "sha256 probe"),
		"a floor in a reset":            bad("reset", "end\n", "floor a 1\nend\n"),
		"a body of another kind":        bad("floor", "v1 floor", "v1 reset"),
	}
}
