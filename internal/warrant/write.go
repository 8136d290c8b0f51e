package warrant

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
)

// Block returns the warrant in its one spelling, each line with its line feed. Of
// a warrant that Check refuses it returns bytes that Find refuses too, or reads as
// another one.
func (w *Warrant) Block() []byte {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, prefix+" "+format+"\n", args...) }
	line("v1")
	line("profile %s", w.Profile)
	line("phase %s", string(w.Phase))
	line("serial %d", w.Serial)
	if w.HasNotBefore {
		line("not-before %d", w.NotBefore)
	}
	if w.Never {
		line("not-after never")
	} else {
		line("not-after %d", w.NotAfter)
	}
	if w.LeaveSHA256 != "" {
		line("leave-sha256 %s", w.LeaveSHA256)
	}
	if w.UninstallSHA256 != "" {
		line("uninstall-sha256 %s", w.UninstallSHA256)
	}
	for _, t := range w.Targets {
		line("target %s", t)
	}
	for _, p := range w.Params {
		line("param %s", p)
	}
	if w.Timeout != 0 {
		line("timeout %d", w.Timeout)
	}
	line("end")
	return b.Bytes()
}

// Check refuses a warrant that its block would not give back.
func (w *Warrant) Check() error {
	_, read, err := locate(w.Block())
	if err != nil {
		return err
	}
	// check: WarrantMalformed: a value that holds a line feed and so writes lines of its own
	if !w.equal(read) {
		return malformed(1, "a value of the warrant does not survive being written")
	}
	return nil
}

// equal reports whether both say the same.
func (w *Warrant) equal(o *Warrant) bool {
	a, b := *w, *o
	if a.Never {
		a.NotAfter = 0
	}
	if !a.HasNotBefore {
		a.NotBefore = 0
	}
	if !slices.Equal(a.Targets, b.Targets) || !slices.Equal(a.Params, b.Params) {
		return false
	}
	a.Targets, a.Params, b.Targets, b.Params = nil, nil, nil, nil
	return reflect.DeepEqual(a, b)
}
