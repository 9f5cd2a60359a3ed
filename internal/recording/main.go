// Command recording runs the quickstart and makes a film of what it prints: docs/quickstart.svg, and the same as text in README.md.
// `make recording` runs it, from the top of the repository.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// What is recorded, and where it goes.
const (
	command = "go run ./cmd/learner quickstart"
	film    = "docs/quickstart.svg"
	page    = "README.md"
)

// The text of the page stands between these.
const (
	begin = "<!-- recording: `make recording` writes this and docs/quickstart.svg -->\n\n```text output\n"
	end   = "```\n\n<!-- end of the recording -->"
)

func main() {
	if err := record(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

func record(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "panlearn-recording-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	words := strings.Fields(command) // go run PACKAGE ARGUMENTS; the compiler's time is not in the film
	program := filepath.Join(dir, "program")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, words[2]).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", words[2], err, out)
	}
	lines, err := capture(ctx, append([]string{program}, words[3:]...))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	shown, err := between(string(text))
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(film, []byte(draw(command, pace(lines))), 0o644),
		os.WriteFile(page, []byte(strings.Replace(string(text), begin+shown+end, begin+plain(lines)+end, 1)), 0o644))
}

// between is what the page shows.
func between(text string) (string, error) {
	_, rest, begins := strings.Cut(text, begin)
	shown, _, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return "", fmt.Errorf("%s has nothing between %q and %q", page, begin, end)
	}
	return shown, nil
}

// plain is the text of the lines.
func plain(lines []line) string {
	var out strings.Builder
	for _, l := range lines {
		out.WriteString(l.text + "\n")
	}
	return out.String()
}
