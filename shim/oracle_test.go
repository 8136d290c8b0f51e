package shim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

// What the Go readers say of an input, in the form of tests/readers.

// saysOfWarrant is what is in a script, searched for all that matters and read.
func saysOfWarrant(text []byte) string {
	said := saysOfBlock(text)
	if strings.HasPrefix(said, "refused ") {
		return said
	}
	return said + fmt.Sprintf("nul %s\ntemplate %s\n", lineOf(text, "\x00"), lineOf(text, "{{"))
}

// saysOfBlock is what the warrant of a script says; of a refusal that is the line at fault.
func saysOfBlock(text []byte) string {
	w, err := warrant.Find(text)
	if err != nil {
		e := decision.From(err)
		line, _, ok := strings.Cut(e.What, ":")
		if e.Reason != decision.WarrantMalformed || !ok {
			return fmt.Sprintf("internal/warrant: %v", err)
		}
		return "refused 14 script: " + line
	}
	var b strings.Builder
	if w != nil {
		writeWarrant(&b, w)
	}
	return b.String()
}

func writeWarrant(b *strings.Builder, w *warrant.Warrant) {
	fmt.Fprintf(b, "profile %s\nphase %s\nserial %d\n", w.Profile, w.Phase, w.Serial)
	fmt.Fprintf(b, "not-before %s\n", onlyIf(w.HasNotBefore, strconv.FormatInt(w.NotBefore, 10)))
	if w.Never {
		b.WriteString("not-after never\n")
	} else {
		fmt.Fprintf(b, "not-after %d\n", w.NotAfter)
	}
	fmt.Fprintf(b, "leave-sha256 %s\nuninstall-sha256 %s\n", w.LeaveSHA256, w.UninstallSHA256)
	for _, target := range w.Targets {
		fmt.Fprintf(b, "target %s\n", target)
	}
	for _, p := range w.Params {
		fmt.Fprintf(b, "param %s\n", p)
	}
	fmt.Fprintf(b, "timeout %s\n", onlyIf(w.Timeout != 0, strconv.Itoa(w.Timeout)))
}

func onlyIf(holds bool, text string) string {
	if holds {
		return text
	}
	return ""
}

// lineOf is the line in which piece stands first, or "".
func lineOf(text []byte, piece string) string {
	before, _, found := bytes.Cut(text, []byte(piece))
	return onlyIf(found, strconv.Itoa(bytes.Count(before, []byte("\n"))+1))
}

// envelopeDiffers holds what the shell says, and the files it wrote, to internal/envelope.
func (r *readers) envelopeDiffers(text []byte, said string) string {
	e, err := envelope.Decode(text)
	var refused *envelope.Error
	switch {
	case errors.As(err, &refused):
		if refused.Code == envelope.ExitPhase && strings.HasPrefix(said, "refused 4 ") && twoFaults(text) {
			return "" // an unknown phase and another fault: which is named is the reader's choice
		}
		return differs(fmt.Sprintf("refused %d", refused.Code), said)
	case err != nil:
		return err.Error()
	case (e.Phase == envelope.PhaseInstall || e.Phase == envelope.PhaseJoin) && len(e.Script) == 0:
		return differs("refused 4", said) // of these no copy is kept
	}
	var b strings.Builder
	fmt.Fprintf(&b, "phase %s\nrun-id %s\n", e.Phase, e.RunID)
	for _, field := range fieldsOf(e) {
		if field.value == nil {
			continue
		}
		fmt.Fprintf(&b, "has %s\n", field.name)
		got, err := os.ReadFile(filepath.Join(r.dir, "work."+field.name))
		if err != nil || !bytes.Equal(got, field.value) {
			return fmt.Sprintf("field %s was decoded to other bytes (%v)", field.name, err)
		}
	}
	return differs(b.String(), said)
}

type field struct {
	name  string
	value []byte
}

func fieldsOf(e *envelope.Envelope) []field {
	return []field{{"params", e.Params}, {"sig", e.Sig}, {"script", e.Script}, {"statement", e.Statement}, {"statement-sig", e.StatementSig}}
}

// twoFaults: beside its unknown phase an envelope has a statement or a field that is too long.
func twoFaults(text []byte) bool {
	return bytes.Contains(append([]byte("\n"), text...), []byte("\nstatement")) || len(text) > envelope.MaxSignature
}

// maxParams is how many the shim takes; Go has no such limit.
const maxParams = 512

// saysOfParams: of parameters that both take, all.
func saysOfParams(block []byte) string {
	values, err := envelope.DecodeParams(block)
	var refused *envelope.Error
	if errors.As(err, &refused) {
		return fmt.Sprintf("refused %d", refused.Code)
	}
	if len(values) > maxParams {
		return fmt.Sprintf("refused %d", envelope.ExitParam)
	}
	var b strings.Builder
	for line := range strings.Lines(string(block)) {
		b.WriteString("param " + line)
	}
	return b.String()
}

// saysOfStatement: of a good one its head, and of roots their threshold.
func saysOfStatement(text []byte) string {
	st, err := statement.Parse(text)
	if err != nil {
		return fmt.Sprintf("refused %d", envelope.ExitEnvelope)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "kind %s\nserial %d\nissued %d\n", st.Kind, st.Serial, st.Issued)
	if st.Cluster != "" {
		fmt.Fprintf(&b, "target cluster %s\n", st.Cluster)
	}
	for _, target := range st.Targets {
		fmt.Fprintf(&b, "target %s\n", target)
	}
	if st.Roots != nil {
		fmt.Fprintf(&b, "threshold %d\n", st.Roots.Threshold)
	}
	return b.String()
}

// pinnedCA is a CA that the host of ask_values in tests/readers has pinned, in base64.
const pinnedCA = "Q0EK"

// saysOfValues: whether the warrant of a script takes the parameters below it.
func saysOfValues(input []byte) string {
	text, block, _ := bytes.Cut(input, []byte("---\n"))
	w, err := warrant.Find(text)
	if err != nil || w == nil {
		return saysOfBlock(text)
	}
	sum := sha256.Sum256([]byte("CA\n"))
	pin := warrant.Pin{Endpoints: []string{"https://192.0.2.1:6443"}, CASHA256: []string{hex.EncodeToString(sum[:])}}
	values, err := envelope.DecodeParams(block)
	if err != nil || len(values) > maxParams || w.CheckParams(values, pin) != nil {
		return fmt.Sprintf("refused %d", envelope.ExitParam)
	}
	return "taken\n"
}
