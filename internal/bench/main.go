package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// A Report is one run.
type Report struct {
	Go     string `json:"go"`
	System string `json:"system"`
	Cores  int    `json:"cores"`
	Quick  bool   `json:"quick"`
	Rows   []Row  `json:"rows"`
}

// A part is one group of measurements. It answers its rows as they are done.
type part struct {
	name    string
	measure func(context.Context, *lab) error
}

func parts() []part {
	return []part{{"cpu", cpu}, {"commit", commit}, {"round", latency}, {"pipeline", pipelines}, {"profile", profiles}}
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == brokerCommand {
		return serveBroker(args[1:], stdin, stdout)
	}
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	asJSON := flags.Bool("json", false, "print the report as JSON")
	quick := flags.Bool("quick", false, "a smoke run: everything once and small")
	only := flags.String("only", strings.Join(names, ","), "parts to run, separated by commas")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("arguments %q: want none", flags.Args())
	}
	dir, err := os.MkdirTemp("", "panlearn-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l := &lab{dir: dir, quick: *quick, log: stderr,
		report: Report{Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), Quick: *quick}}
	for _, name := range strings.Split(*only, ",") {
		at := slices.Index(names, name)
		if at < 0 {
			return fmt.Errorf("--only %q: want some of %s", name, strings.Join(names, ", "))
		}
		if err := parts()[at].measure(ctx, l); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if *asJSON {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(l.report)
	}
	return l.report.write(stdout)
}
