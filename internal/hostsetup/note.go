package hostsetup

import "fmt"

// Note is something that people should know and that stops nothing.
type Note struct {
	// Level is "note" or "warning".
	Level string
	Text  string
}

func note(format string, args ...any) Note { return Note{"note", fmt.Sprintf(format, args...)} }

func warning(format string, args ...any) Note { return Note{"warning", fmt.Sprintf(format, args...)} }
