package proof_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/proof"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func facts() *proof.Facts {
	return &proof.Facts{
		Cluster: "prod-1", RunUID: "01234567-89ab-cdef-0123-456789abcdef",
		Nonce:      "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
		Marks:      []proof.Mark{{Profile: "tls-bootstrap", Serial: 42}, {Profile: "web-1.example", Serial: 7}},
		Statements: []proof.Serial{{Kind: statement.KindRoots, Serial: 2}, {Kind: statement.KindSigners, Serial: 9}},
		BootID:     "63b6dfb6-deb7-461a-8897-8f68ba802974", Time: 1800000000,
		KubeletKey: "SHA256:qDPVmrCzDT7a0Ua4hKkYw9XHcgvYHmeKBUW5tY4xQgE",
	}
}

func question() proof.Question {
	f := facts()
	return proof.Question{Cluster: f.Cluster, RunUID: f.RunUID, Nonce: f.Nonce}
}

func vector(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestAProofThatSSHKeygenMade: the vector of docs/spec/shim.md, signed by ssh-keygen -Y sign.
func TestAProofThatSSHKeygenMade(t *testing.T) {
	key, _, err := sshsig.ParsePublicKey(strings.TrimSuffix(string(vector(t, "host.pub")), "\n"))
	if err != nil {
		t.Fatal(err)
	}
	text, armored := proof.Split(append(vector(t, "facts"), vector(t, "facts.sig")...))
	got, err := proof.Verify(text, armored, proof.Host{Keys: []ssh.PublicKey{key}}, question(), testkit.Now())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(facts(), got); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(got.Text(), vector(t, "facts")) {
		t.Errorf("the facts are written as %q", got.Text())
	}
}

func TestAHostThatKnowsNothing(t *testing.T) {
	f := facts()
	f.Cluster, f.KubeletKey, f.Marks, f.Statements = "", "", nil, nil
	got, err := proof.Parse(f.Text())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, got); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(string(f.Text()), "\ncluster none\n") || !strings.Contains(string(f.Text()), "\nkubelet-key none\n") {
		t.Errorf("wrote %q", f.Text())
	}
}

// TestAFactHasOneSpelling: each line in its place, in one spelling, once.
func TestAFactHasOneSpelling(t *testing.T) {
	good := string(facts().Text())
	replace := func(old, new string) string {
		text := strings.Replace(good, old, new, 1)
		if text == good {
			t.Fatalf("the text has no %q", old)
		}
		return text
	}
	for name, text := range map[string]string{
		"nothing":                             "",
		"a line break":                        "\n",
		"another version":                     replace(": v1", ": v2"),
		"another text":                        replace("hostwarrant-proof", "hostwarrant-statement"),
		"a line before":                       "\n" + good,
		"no last line break":                  strings.TrimSuffix(good, "\n"),
		"no end":                              strings.TrimSuffix(good, "end\n"),
		"the end in the middle":               replace("boot-id", "end\nboot-id"),
		"a line behind the end":               good + "mark a 1\n",
		"a line break behind the end":         good + "\n",
		"a second end":                        good + "end\n",
		"CR LF":                               strings.ReplaceAll(good, "\n", "\r\n"),
		"a tab":                               replace("cluster ", "cluster\t"),
		"two spaces":                          replace("nonce ", "nonce  "),
		"a space behind":                      replace("time 1800000000", "time 1800000000 "),
		"no cluster":                          replace("cluster prod-1\n", ""),
		"a cluster without an id":             replace("cluster prod-1", "cluster"),
		"a cluster with an empty id":          replace("cluster prod-1", "cluster "),
		"a cluster in capitals":               replace("prod-1", "Prod-1"),
		"two clusters":                        replace("cluster prod-1\n", "cluster prod-1\ncluster prod-2\n"),
		"a run UID in capitals":               replace("01234567-89ab", "01234567-89AB"),
		"no run UID":                          replace("run-uid 01234567-89ab-cdef-0123-456789abcdef\n", ""),
		"a short nonce":                       replace("2d711642", "2d71164"),
		"a long nonce":                        replace("2d711642", "2d7116420"),
		"run UID and nonce in each's place":   replace("cluster prod-1\n", "cluster prod-1\nnonce "+facts().Nonce+"\n"),
		"a mark twice":                        replace("mark web-1.example 7", "mark tls-bootstrap 7"),
		"marks in another order":              replace("mark web-1.example 7", "mark a 7"),
		"a mark without a serial":             replace("tls-bootstrap 42", "tls-bootstrap"),
		"a mark with an empty serial":         replace("tls-bootstrap 42", "tls-bootstrap "),
		"a mark with two serials":             replace("tls-bootstrap 42", "tls-bootstrap 42 43"),
		"a mark with a serial of 16 digits":   replace("tls-bootstrap 42", "tls-bootstrap 1000000000000000"),
		"a mark with a zero before":           replace("tls-bootstrap 42", "tls-bootstrap 042"),
		"a mark with a sign":                  replace("tls-bootstrap 42", "tls-bootstrap +42"),
		"a mark of a path":                    replace("tls-bootstrap 42", "../tls 42"),
		"a mark of a name that is too long":   replace("tls-bootstrap 42", strings.Repeat("a", 254)+" 42"),
		"a mark behind the statements":        replace("boot-id", "mark zz 1\nboot-id"),
		"a kind twice":                        replace("statement signers 9", "statement roots 9"),
		"kinds in another order":              replace("statement roots 2", "statement reset 2"),
		"a kind that nobody has":              replace("statement roots 2", "statement root 2"),
		"no boot id":                          replace("boot-id 63b6dfb6-deb7-461a-8897-8f68ba802974\n", ""),
		"a boot id that is none":              replace("63b6dfb6-", ""),
		"a time before 1970":                  replace("time 1", "time -1"),
		"a time with parts":                   replace("time 1800000000", "time 1800000000.5"),
		"a kubelet key without its algorithm": replace("SHA256:", ""),
		"a kubelet key by MD5":                replace("SHA256:", "MD5:"),
		"a kubelet key cut short":             replace("4xQgE", "4xQg"),
		"a kubelet key of another spelling":   replace("4xQgE", "4xQgF"),
		"no kubelet key":                      replace("kubelet-key SHA256:qDPVmrCzDT7a0Ua4hKkYw9XHcgvYHmeKBUW5tY4xQgE\n", ""),
		"a NUL":                               replace("cluster prod-1", "cluster prod-1\x00"),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := proof.Parse([]byte(text))
			testkit.WantReason(t, err, decision.Malformed)
			if got != nil {
				t.Errorf("read %+v", got)
			}
		})
	}
}

// TestALongProofIsNotRead: at the limit it is, and a byte more is refused before anything is split or verified.
func TestALongProofIsNotRead(t *testing.T) {
	signer := testkit.NewSigner(t, "ed25519")
	f := facts()
	f.Marks = nil
	for i := 0; len(f.Text()) < proof.MaxBytes-500; i++ {
		name := strings.Repeat("a", 200) + "-" + string(rune('a'+i/676)) + string(rune('a'+i/26%26)) + string(rune('a'+i%26))
		f.Marks = append(f.Marks, proof.Mark{Profile: name, Serial: 1})
	}
	f.Marks = append(f.Marks, proof.Mark{Profile: "z", Serial: 1}, proof.Mark{Profile: strings.Repeat("z", 2), Serial: 1})
	last := &f.Marks[len(f.Marks)-1]
	last.Profile = strings.Repeat("z", 2+proof.MaxBytes-len(f.Text())-250)
	f.Marks = append(f.Marks, proof.Mark{Profile: strings.Repeat("z", 242), Serial: 1})
	if _, err := proof.Parse(f.Text()); err != nil || len(f.Text()) != proof.MaxBytes {
		t.Fatalf("%d bytes: %v", len(f.Text()), err)
	}
	f.Time *= 10
	_, err := proof.Parse(f.Text())
	testkit.WantReason(t, err, decision.Malformed)
	armored := testkit.Sign(t, signer, proof.Namespace, f.Text())
	_, err = proof.Verify(f.Text(), []byte(armored), proof.Host{Keys: []ssh.PublicKey{signer.PublicKey()}}, question(), testkit.Now())
	testkit.WantReason(t, err, decision.Malformed)
}

func TestSplit(t *testing.T) {
	begin := "-----BEGIN SSH SIGNATURE-----\n"
	for name, tt := range map[string]struct{ output, text, armored string }{
		"nothing":             {"", "", ""},
		"no signature":        {"end\n", "end\n", ""},
		"a signature":         {"end\n" + begin + "x\n", "end\n", begin + "x\n"},
		"two signatures":      {"end\n" + begin + begin, "end\n", begin + begin},
		"not on its own line": {"end " + begin, "end " + begin, ""},
	} {
		t.Run(name, func(t *testing.T) {
			text, armored := proof.Split([]byte(tt.output))
			if string(text) != tt.text || string(armored) != tt.armored {
				t.Errorf("split into %q and %q", text, armored)
			}
		})
	}
}
