package main

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/docs"
)

// call runs a command line without a key, a clock or files.
func call(args ...string) result {
	var out, errs bytes.Buffer
	c := &cli{in: strings.NewReader(""), out: &out, err: &errs}
	code := c.run(context.Background(), args)
	return result{code, out.String(), errs.String()}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	for _, cmd := range allCommands((&cli{}).rootCommand()) {
		t.Run(cmd.CommandPath(), func(t *testing.T) {
			words := strings.Fields(cmd.CommandPath())[1:]
			for _, args := range [][]string{append(words, "--help"), append(words, "-h"), append([]string{"help"}, words...)} {
				r := call(args...)
				if r.code != exitDone || r.err != "" || !strings.Contains(r.out, "Usage:\n  "+cmd.CommandPath()) {
					t.Errorf("%v: want help on stdout alone and exit 0, got exit %d, stdout %q, stderr %q", args, r.code, r.out, r.err)
				}
			}
			if cmd.Short == "" || cmd.Long == "" || cmd.Example == "" {
				t.Error("lacks a summary, an explanation or an example")
			}
			if strings.HasSuffix(cmd.Short, ".") || len(cmd.Short) > 80 {
				t.Errorf("%q is no short summary without a full stop", cmd.Short)
			}
			if !regexp.MustCompile(`(?m)(^  |\| )` + cmd.CommandPath() + `( |$)`).MatchString(cmd.Example) {
				t.Errorf("its example does not call it: %q", cmd.Example)
			}
		})
	}
}

func TestEveryTopicPrints(t *testing.T) {
	topics, err := readTopics()
	if err != nil {
		t.Fatal(err)
	}
	pages, err := fs.Glob(docs.Pages(), "spec/*.md")
	if err != nil || len(pages) < 9 || len(topics) != len(pages)+4 {
		t.Errorf("%d topics of %d pages, %v", len(topics), len(pages), err)
	}
	list := strings.Join(strings.Fields(call("help", "--help").out), " ")
	for topic := range topics {
		r := call("help", topic)
		if r.code != exitDone || r.err != "" || len(r.out) < 300 {
			t.Errorf("%s: exit %d, %d bytes, stderr %q", topic, r.code, len(r.out), r.err)
		}
		prose := regexp.MustCompile(`(?m)^    .*$`).ReplaceAllString(r.out, "")
		for _, mark := range []string{"](", "```", "\n# ", "\n## ", "\n|", "**"} {
			if strings.Contains(prose, mark) {
				t.Errorf("%s still shows %q", topic, mark)
			}
		}
		if topic != "policy" && !regexp.MustCompile(`[ ,]`+topic+`\b`).MatchString(list) {
			t.Errorf("help --help does not list %s", topic)
		}
	}
}

func TestPlainText(t *testing.T) {
	page := strings.Join([]string{
		"# A *page*", "", "Some **bold** text that", "goes on, see [strict SSHSIG](sshsig.md), [a file](../cli.md#keys)",
		"and [the web](https://example.com/x).", "", "## Below", "", "```", "| code |", "  stays", "```", "",
		"- one item", "  that goes on", "- two", "", "### Last", "| name | means | do |", "|---|:--|---|", "| `a\\|b` | first |  |", "| c | x | y |", "",
		"| k | v |", "|---|---|", "| one | two |",
	}, "\n")
	want := strings.Join([]string{
		"A *page*", "========", "", "Some bold text that goes on, see strict SSHSIG (help sshsig), a file and the web", "(https://example.com/x).", "",
		"Below", "-----", "", "    | code |", "      stays", "", "- one item that goes on", "- two", "", "Last",
		"  `a|b`", "      means: first", "  c", "      means: x", "      do: y", "", "  one", "      two", "",
	}, "\n")
	if diff := cmp.Diff(want, plainText(page)); diff != "" {
		t.Error(diff)
	}
}

func TestSimilar(t *testing.T) {
	names := []string{"init", "inspect", "policy", "sig", "sign", "verify", "version"}
	for word, want := range map[string]string{
		"verfiy": "verify", "vrify": "verify", "sing": "sig sign", "verif": "verify", "sgn": "sign", "si": "sig sign", "ver": "verify version",
		"in": "init inspect", "polcy": "policy", "x": "", "": "", "frobnicate": "", "signature": "", "SIGN": "", "verifyyyy": "",
	} {
		if got := strings.Join(similar(word, names), " "); got != want {
			t.Errorf("%q: want %q, got %q", word, want, got)
		}
	}
	for _, pair := range []struct {
		a, b string
		n    int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"abcd", "acbd", 1}} {
		if got := edits(pair.a, pair.b); got != pair.n {
			t.Errorf("%q to %q: want %d, got %d", pair.a, pair.b, pair.n, got)
		}
	}
}

func TestProgramNames(t *testing.T) {
	for arg0, want := range map[string]string{"hostwarrant": "hostwarrant", "/usr/bin/kubectl-hostwarrant": "kubectl-hostwarrant", "kubectl-hostwarrant.exe": "kubectl-hostwarrant"} {
		if got := programName(arg0); got != want {
			t.Errorf("%s: want %s, got %s", arg0, want, got)
		}
	}
	var out bytes.Buffer
	if code := run(context.Background(), []string{"/x/kubectl_complete-hostwarrant", "insp"}, strings.NewReader(""), &out, io.Discard); code != exitDone || !strings.HasPrefix(out.String(), "inspect\t") {
		t.Errorf("exit %d, %q", code, out.String())
	}
}

func TestAClosedStdoutIsAnErrorOfHelp(t *testing.T) {
	c := &cli{in: strings.NewReader(""), out: closedPipe{}, err: io.Discard}
	if code := c.run(context.Background(), []string{"help", "sshsig"}); code != exitUndecided {
		t.Errorf("want %d, got %d", exitUndecided, code)
	}
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
