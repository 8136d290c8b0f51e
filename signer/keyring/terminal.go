package keyring

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/term"
)

// AskTerminal asks for a passphrase on the terminal, never on stdin, which may be the data.
func AskTerminal(path string) (pass []byte, err error) {
	in, out := "/dev/tty", "/dev/tty"
	if runtime.GOOS == "windows" {
		in, out = "CONIN$", "CONOUT$"
	}
	tty, err := os.OpenFile(in, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.New("there is no terminal to ask for it")
	}
	defer tty.Close()
	show, err := os.OpenFile(out, os.O_WRONLY, 0)
	if err != nil {
		return nil, errors.New("there is no terminal to ask for it")
	}
	defer show.Close()
	if _, err := fmt.Fprintf(show, "Passphrase for %q: ", path); err != nil {
		return nil, fmt.Errorf("asking for it: %v", err)
	}
	pass, err = term.ReadPassword(int(tty.Fd()))
	if _, werr := fmt.Fprintln(show); err == nil {
		err = werr
	}
	if err != nil {
		return nil, fmt.Errorf("reading it: %v", err)
	}
	return pass, nil
}
