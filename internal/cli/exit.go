package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/panlearn/panlearn/internal/build"
)

// Exit codes of every command.
const (
	exitDone      = 0
	exitError     = 1
	ExitUsage     = 2  // flags, arguments, task file
	ExitRefused   = 3  // refused for privacy: budget or policy; trying again changes nothing
	ExitTransient = 75 // interrupted or out of reach: the same command again goes on
)

// A codedError carries the exit code that its command should end with.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }

func (e *codedError) Unwrap() error { return e.err }

func coded(code int, err error) error {
	var already *codedError
	if err == nil || errors.As(err, &already) {
		return err
	}
	return &codedError{code: code, err: err}
}

// Usage marks an error as the caller's: exit code 2.
func Usage(err error) error { return coded(ExitUsage, err) }

// Usagef returns Usage of a formatted error.
func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// Transient marks an error as worth trying again: exit code 75.
func Transient(err error) error { return coded(ExitTransient, err) }

// Classify gives an error the code of the first target that it matches.
func Classify(err error, classes ...Class) error {
	for _, c := range classes {
		if err != nil && c.Is(err) {
			return coded(c.Code, err)
		}
	}
	return err
}

// A Class is a set of errors with one exit code.
type Class struct {
	Code int
	Is   func(error) bool
}

// As returns the class of errors that wrap a T.
func As[T error](code int) Class {
	return Class{Code: code, Is: func(err error) bool {
		var target T
		return errors.As(err, &target)
	}}
}

// Is returns the class of errors that wrap target.
func Is(code int, target error) Class {
	return Class{Code: code, Is: func(err error) bool { return errors.Is(err, target) }}
}

// signalGrace is the time within which a second signal counts as the first one: supervisors signal a process
// and its group.
const signalGrace = time.Second

// Main runs a command until it ends or a signal stops it, prints an error as one line, and returns the exit code. A
// signal more than a second after the first kills the process.
func Main(root *cobra.Command, args []string, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ended, relented := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(relented)
		select {
		case <-ended:
			return
		case <-ctx.Done():
		}
		select {
		case <-ended:
		case <-time.After(signalGrace):
			stop()
		}
	}()
	defer func() {
		close(ended)
		<-relented
	}()
	root.SilenceErrors, root.SilenceUsage = true, true
	if root.HasSubCommands() {
		root.Version = build.This().String()
		root.SetVersionTemplate("{{.Version}}\n")
	}
	root.SetArgs(args)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		// Cobra reads the flags of a group before it looks for the command that they were meant for.
		if word := len(strings.Fields(c.CommandPath())) - 1; c.HasSubCommands() && len(args) > word && args[word] != "" &&
			args[word][0] != '-' {
			return unknownCommand(c, args[word])
		}
		return Usage(flagError(err))
	})
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := fromEnvironment(cmd.Flags(), os.LookupEnv); err != nil {
			return err
		}
		unknown, err := strangers(os.Environ())
		for _, text := range unknown {
			lastWord(cmd, stderr, slog.LevelWarn, text)
		}
		return err
	}
	refuseUnknown(root)
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	code := exitError
	var c *codedError
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		code = ExitTransient
		err = errors.New("interrupted" + goesOn(ran))
	case errors.As(err, &c):
		code = c.code
	case isUsage(err):
		code = ExitUsage
	}
	lastWord(ran, stderr, slog.LevelError, oneLine(err), "exit_code", code)
	return code
}

// goesOn returns the text of an interrupted command on a second run, which goes on if the command keeps a
// state; otherwise "".
func goesOn(c *cobra.Command) string {
	if public := c.Flags().Lookup("public"); c.Flags().Lookup("state") == nil || public != nil &&
		public.Value.String() == "true" {
		return ""
	}
	return "; the same command again goes on where this one stopped"
}

// lastWord prints a last message that the command's own logger does not have: a line of text or, where the
// command logs as JSON, an event of the log.
func lastWord(c *cobra.Command, stderr io.Writer, level slog.Level, text string, more ...any) {
	if f := c.Flags().Lookup("log-format"); f != nil && (f.Value.String() == "json" || !f.Changed &&
		os.Getenv(variable(f.Name)) == "json") {
		slog.New(slog.NewJSONHandler(stderr, nil)).Log(context.Background(), level, text, more...)
		return
	}
	fmt.Fprintf(stderr, "%s: %s\n", c.Root().Name(), text)
}

// oneLine joins the lines of joined errors.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// refuseUnknown makes a group of commands, the root too, refuse a word that is none of them. Cobra alone would
// answer it with help and success.
func refuseUnknown(c *cobra.Command) {
	for _, sub := range c.Commands() {
		refuseUnknown(sub)
	}
	if !c.HasSubCommands() || c.Runnable() {
		suggestFlag(c)
		return
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(c, args[0])
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
}

func unknownCommand(c *cobra.Command, word string) error {
	return Usagef("unknown command %q for %q%s", word, c.CommandPath(), meant(c, word))
}

// suggestFlag makes a command without arguments reject a file with the name of the flag that takes it: -f for a task
// file, --data for any other, if the command has that flag.
func suggestFlag(c *cobra.Command) {
	taken := c.Args
	if taken == nil {
		return
	}
	c.Args = func(c *cobra.Command, args []string) error {
		err := taken(c, args)
		if err == nil || len(args) == 0 {
			return err
		}
		switch isTask := strings.HasSuffix(args[0], ".yaml"); {
		case isTask && c.Flags().ShorthandLookup("f") != nil:
			return Usagef("%s: the task file comes after -f: %s -f %[1]s", args[0], c.CommandPath())
		case !isTask && c.Flags().Lookup("data") != nil && strings.HasPrefix(err.Error(), "unknown command"):
			return Usagef("%s: data come after --data: %s --data %[1]s", args[0], c.CommandPath())
		}
		return err
	}
}

// typos bounds the number of wrong letters in a command that is suggested.
const typos = 2

// meant returns a suggestion of the commands below c that resemble a word, or an empty string.
func meant(c *cobra.Command, word string) string {
	c.SuggestionsMinimumDistance = typos
	like := c.SuggestionsFor(word)
	if len(like) == 0 {
		return ""
	}
	return ": did you mean " + strings.Join(like, " or ") + "?"
}

// flagError replaces the error of Go's parsers by one that names the values a flag takes, if it knows the
// type of the flag.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	want := map[string]string{"int": "a whole number", "uint64": "a whole number of at least 0", "float64": "a number",
		"bool": "true or false", "uintSlice": "whole numbers with commas"}[invalid.GetFlag().Value.Type()]
	if want == "" {
		return err
	}
	return fmt.Errorf("--%s %q: want %s", invalid.GetFlag().Name, invalid.GetValue(), want)
}

// isUsage recognises the errors that cobra makes itself; they have no type.
func isUsage(err error) bool {
	var notExist *pflag.NotExistError
	text := err.Error()
	for _, prefix := range []string{"unknown command", "required flag", "accepts ", "requires ", "invalid argument ",
		"if any flags in the group", "at least one of the flags in the group"} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return errors.As(err, &notExist)
}

// OneArg accepts exactly one argument; want describes it in the usage error for any other number.
func OneArg(name, want string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Usagef("%s: %d arguments, want %s", name, len(args), want)
		}
		return nil
	}
}
