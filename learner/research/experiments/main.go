package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	err := command(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		fmt.Fprintln(os.Stderr, "experiments:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	names := strings.Join(append([]string{"mnist50", "people", "resque", "resque-private"},
		slices.Sorted(maps.Keys(studies))...), ", ")
	if len(args) == 0 {
		return fmt.Errorf("want one of %s", names)
	}
	flags := flag.NewFlagSet("experiments "+args[0], flag.ContinueOnError)
	data := flags.String("data", os.Getenv("PANLEARN_DATA"), "`FOLDER` of the public data sets")
	out := flags.String("o", "", "of mnist50 and resque the `FILE`; else pictures are drawn to FILE-N-M.svg")
	seeds := flags.Int("seeds", 5, "`K` trials, each with other rows to train on")
	only := flags.String("only", "", "no contenders but those whose name has `TEXT` in it, of people one of TEXT,TEXT")
	of := flags.String("of", "",
		"no silos but `N-M`: N of which M answer a round; of people no runs but those of N, with the ridge M")
	epsilons := flags.String("epsilons", "", "those to try, `E,E,...`; the largest says what a batch is, for all")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if args[0] == "people" {
		return people(os.Stdout, os.Stderr, flags.Arg(0), *seeds, *of, *only)
	}
	if args[0] == "mnist50" {
		if *out == "" {
			return errors.New("mnist50: want -o FILE")
		}
		return write(*out, func(w io.Writer) error { return mnist50(filepath.Join(*data, "mnist"), w, os.Stderr) })
	}
	if args[0] == "resque" {
		return parallel(*out, []float64{5, 10, 20, 50, 100, 200}, os.Stdout)
	}
	if args[0] == "resque-private" {
		return resquePrivate(os.Stdout, *seeds)
	}
	s, known := studies[args[0]]
	if !known {
		return fmt.Errorf("%q: want one of %s", args[0], names)
	}
	path := flags.Arg(0)
	if s.data != "" {
		path = filepath.Join(*data, s.data)
	}
	if path == "" || flags.NArg() > 1 || *seeds < 2 {
		return fmt.Errorf("%s: want the file that mnist50 made, and at least 2 seeds", args[0])
	}
	if *epsilons != "" {
		s.epsilons = nil
		for e := range strings.SplitSeq(*epsilons, ",") {
			v, err := strconv.ParseFloat(e, 64)
			if err != nil {
				return fmt.Errorf("-epsilons: %w", err)
			}
			s.epsilons = append(s.epsilons, v)
		}
	}
	tables := 0
	for _, pair := range s.of {
		name := fmt.Sprintf("%d-%d", pair[0], pair[1])
		if *of != "" && *of != name {
			continue
		}
		setting, err := s.load(path, pair)
		if err != nil {
			return err
		}
		t, err := setting.fill(*only, *seeds, os.Stdout, os.Stderr)
		if err != nil {
			return err
		}
		if *out != "" {
			if err := t.draw(*out + "-" + name + ".svg"); err != nil {
				return err
			}
		}
		tables++
	}
	if tables == 0 {
		return fmt.Errorf("-of %s: none of %v", *of, s.of)
	}
	return nil
}

// write makes a file of what is written.
func write(path string, fill func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := fill(file); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
