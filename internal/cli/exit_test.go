package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program returns a command tree like ours: a root, a leaf, a group. run is the leaf.
func program(run func(*cobra.Command) error) *cobra.Command {
	root := &cobra.Command{Use: "learner", Args: cobra.NoArgs}
	leaf := &cobra.Command{Use: "run", Args: cobra.NoArgs, RunE: func(c *cobra.Command,
		_ []string) error {
		return run(c)
	}}
	leaf.Flags().Int("count", 1, "")
	leaf.Flags().String("name", "file", "")
	group := &cobra.Command{Use: "privacy"}
	sub := &cobra.Command{Use: "check FILE", Args: cobra.ExactArgs(1), RunE: func(*cobra.Command,
		[]string) error {
		return nil
	}}
	sub.Flags().Int("users", 0, "")
	_ = sub.MarkFlagRequired("users")
	sub.Flags().Int("a", 0, "")
	sub.Flags().Int("b", 0, "")
	sub.MarkFlagsRequiredTogether("a", "b")
	group.AddCommand(sub)
	root.AddCommand(leaf, group)
	root.SetOut(new(bytes.Buffer))
	return root
}

func TestExitCodes(t *testing.T) {
	plain := errors.New("plain")
	for _, test := range []struct {
		name string
		err  error
		want int
	}{
		{"nothing", nil, exitDone},
		{"an error", plain, exitError},
		{"usage", Usage(plain), ExitUsage},
		{"usage with a text", Usagef("--x %d: want 1", 2), ExitUsage},
		{"refused", coded(ExitRefused, plain), ExitRefused},
		{"transient", Transient(plain), ExitTransient},
		{"wrapped", fmt.Errorf("run: %w", coded(ExitRefused, plain)), ExitRefused},
		{"joined", errors.Join(plain, Transient(plain)), ExitTransient},
		{"the first code stays", Usage(coded(ExitRefused, plain)), ExitRefused},
		{"nil stays nil", Usage(nil), exitDone},
		{"somebody else's context", context.Canceled, exitError},
		{"by value", Classify(fmt.Errorf("x: %w", plain), Is(ExitTransient, plain)), ExitTransient},
		{"by type", Classify(fmt.Errorf("x: %w", &typed{}), As[*typed](ExitRefused)), ExitRefused},
		{"by no class", Classify(plain, As[*typed](ExitRefused), Is(ExitTransient, context.Canceled)), exitError},
		{"nil has no class", Classify(nil, Is(ExitTransient, plain)), exitDone},
	} {
		var stderr bytes.Buffer
		got := Main(program(func(*cobra.Command) error { return test.err }), []string{"run"}, &stderr)
		if got != test.want {
			t.Errorf("%s: exit code %d, want %d", test.name, got, test.want)
		}
		if lines := strings.Count(stderr.String(), "\n"); (test.err == nil && lines != 0) || (test.err != nil && lines != 1) {
			t.Errorf("%s: standard error %q, want one line for an error", test.name, stderr.String())
		}
	}
}

type typed struct{}

func (*typed) Error() string { return "typed" }

// TestUsage: what cobra refuses itself is the caller's mistake too.
func TestUsage(t *testing.T) {
	for _, args := range []string{
		"nonsense", "run nonsense", "run --nonsense", "run --count x", "run --count", "privacy nonsense", "privacy check",
		"privacy check a b --users 1", "privacy check a", "privacy check a --users 1 --a 1", "run -z",
	} {
		var stderr bytes.Buffer
		got := Main(program(func(*cobra.Command) error { return nil }), strings.Fields(args), &stderr)
		if got != ExitUsage || strings.Count(stderr.String(), "\n") != 1 || !strings.HasPrefix(stderr.String(), "learner: ") {
			t.Errorf("%s: exit code %d, %q", args, got, stderr.String())
		}
	}
	for _, args := range []string{"run", "privacy", "--help", "privacy --help", "run --help",
		"privacy check a --users 1"} {
		var stderr bytes.Buffer
		if got := Main(program(func(*cobra.Command) error { return nil }), strings.Fields(args), &stderr); got != exitDone {
			t.Errorf("%s: exit code %d, %q", args, got, stderr.String())
		}
	}
}

// TestMeant: a word that is nearly a command gets it as a suggestion, another word gets none.
func TestMeant(t *testing.T) {
	for args, want := range map[string]string{
		"rn":           "learner: unknown command \"rn\" for \"learner\": did you mean run?\n",
		"privacy chek": ": did you mean check?\n",
		"xyzzyx":       "learner: unknown command \"xyzzyx\" for \"learner\"\n",
		"rn -f x":      "learner: unknown command \"rn\" for \"learner\": did you mean run?\n",
	} {
		var stderr bytes.Buffer
		got := Main(program(func(*cobra.Command) error { return nil }), strings.Fields(args), &stderr)
		if got != ExitUsage || !strings.HasSuffix(stderr.String(), want) || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%s: exit code %d, %q, want %q", args, got, stderr.String(), want)
		}
	}
}

// TestTaskFileWithoutFlag: the error about a task file that is given as an argument names its flag, if the command has
// one.
func TestTaskFileWithoutFlag(t *testing.T) {
	root := program(func(*cobra.Command) error { return nil })
	plan := &cobra.Command{Use: "plan", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return nil }}
	plan.Flags().StringP("task-file", "f", "", "")
	root.AddCommand(plan)
	draft := &cobra.Command{Use: "init", Args: cobra.NoArgs, RunE: plan.RunE}
	draft.Flags().String("data", "", "")
	root.AddCommand(draft)
	for args, want := range map[string]string{
		"plan x.yaml": "learner: x.yaml: the task file comes after -f: learner plan -f x.yaml\n",
		"init s.csv":  "learner: s.csv: data come after --data: learner init --data s.csv\n",
		"plan x":      "unknown command \"x\"", "run x.yaml": "unknown command \"x.yaml\"",
	} {
		var stderr bytes.Buffer
		if got := Main(root, strings.Fields(args), &stderr); got != ExitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit code %d, %q, want %q", args, got, stderr.String(), want)
		}
	}
}

// TestInterrupted: a signal's context that ended the command is worth trying again.
func TestInterrupted(t *testing.T) {
	var stderr bytes.Buffer
	root := program(func(c *cobra.Command) error {
		ctx, cancel := context.WithCancel(c.Context())
		cancel()
		return ctx.Err()
	})
	if got := Main(root, []string{"run"}, &stderr); got != exitError {
		t.Errorf("a context that no signal ended: exit code %d, want %d", got, exitError)
	}
}

func TestEnvironment(t *testing.T) {
	for _, test := range []struct {
		args, env string // env is PANLEARN_COUNT
		want      int
	}{
		{"run", "", 1}, {"run", "7", 7}, {"run --count 3", "7", 3}, {"run --count 1", "7", 1}, {"run --count 3", "x", 3},
	} {
		t.Setenv("PANLEARN_COUNT", test.env)
		var got int
		code := Main(program(func(c *cobra.Command) (err error) {
			got, err = c.Flags().GetInt("count")
			return err
		}), strings.Fields(test.args), new(bytes.Buffer))
		if code != exitDone || got != test.want {
			t.Errorf("%s with PANLEARN_COUNT=%q: %d (exit code %d), want %d", test.args, test.env, got, code, test.want)
		}
	}
	t.Setenv("PANLEARN_COUNT", "x")
	var stderr bytes.Buffer
	if code := Main(program(func(*cobra.Command) error { return nil }), []string{"run"}, &stderr); code != ExitUsage ||
		!strings.Contains(stderr.String(), `PANLEARN_COUNT="x"`) {
		t.Errorf("a bad variable: exit code %d, %q", code, stderr.String())
	}
	t.Setenv("PANLEARN_COUNT", "")
	flags := pflag.NewFlagSet("publish", pflag.ContinueOnError)
	data := flags.String("data", "", "")
	if err := fromEnvironment(flags, func(string) (string, bool) {
		return "/where/the/data/sets/are",
			true
	}); err != nil || *data != "" {
		t.Errorf("--data from the environment: %q, %v", *data, err)
	}
	t.Setenv("PANLEARN_USERS", "5") // satisfies a required flag
	if code := Main(program(func(*cobra.Command) error { return nil }), []string{"privacy", "check", "a"},
		&stderr); code != exitDone {
		t.Errorf("a required flag from the environment: exit code %d, %q", code, stderr.String())
	}
}

func TestManyLinesAreOne(t *testing.T) {
	var stderr bytes.Buffer
	err := errors.Join(errors.New("first"), fmt.Errorf("second\r\nthird"))
	Main(program(func(*cobra.Command) error { return err }), []string{"run"}, &stderr)
	if got := stderr.String(); got != "learner: first; second; third\n" {
		t.Errorf("%q", got)
	}
}

// TestGoesOn: an interrupted command announces that a second run goes on only if it keeps its state.
func TestGoesOn(t *testing.T) {
	for _, test := range []struct {
		state, public bool
		args          []string
		says          bool
	}{{}, {state: true, says: true}, {state: true, public: true, says: true}, {state: true, public: true,
		args: []string{"--public"}}} {
		c := &cobra.Command{Use: "fit"}
		if test.state {
			c.Flags().String("state", "", "")
		}
		if test.public {
			c.Flags().Bool("public", false, "")
		}
		if err := c.ParseFlags(test.args); err != nil {
			t.Fatal(err)
		}
		if got := goesOn(c); (got != "") != test.says {
			t.Errorf("%+v: %q", test, got)
		}
	}
}
