package cli

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Manual is the help of a command and of all below it, as a Markdown document. It does not depend on the environment.
func Manual(root *cobra.Command) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n\n%s\n\n*For everybody, to look things up. You need nothing before; [README.md](README.md) says where to begin.* What `--help` says of each command:\n",
		root.Name(), sentence(root.Short))
	if err := manual(&out, root); err != nil {
		return "", err
	}
	return out.String(), nil
}

func manual(out *strings.Builder, c *cobra.Command) error {
	var help bytes.Buffer
	c.SetOut(&help)
	err := c.Help()
	c.SetOut(nil)
	if err != nil {
		return fmt.Errorf("help of %s: %w", c.CommandPath(), err)
	}
	if strings.Contains(help.String(), "(default [])") {
		return fmt.Errorf("help of %s: a flag whose default is nothing says so with brackets: set its DefValue to the empty text", c.CommandPath())
	}
	fmt.Fprintf(out, "\n## %s\n\n%s\n\n```\n", c.CommandPath(), sentence(c.Short))
	for line := range strings.Lines(strings.TrimSpace(help.String()) + "\n") {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	out.WriteString("```\n")
	for _, below := range c.Commands() {
		if !below.IsAvailableCommand() || below.Name() == "completion" {
			continue
		}
		if err := manual(out, below); err != nil {
			return err
		}
	}
	return nil
}

func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
