package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// PrintJSON writes v as the one JSON document of a command.
func PrintJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// Result prints v as JSON, or as text by human.
func Result(w io.Writer, asJSON bool, v any, human func(io.Writer) error) error {
	if asJSON {
		return PrintJSON(w, v)
	}
	return human(w)
}

// Terminal reports whether a person watches the file.
func Terminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
