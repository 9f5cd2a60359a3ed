package main

import (
	"fmt"
	"io"
	"math"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

func newPrivacy() *cobra.Command {
	c := &cobra.Command{
		Use:   "privacy",
		Short: "the privacy accountant: noise from (epsilon, delta), and back",
		Long: `privacy computes with the proved bound of docs/proofs/theorem-a.md.
Every epsilon and delta is an upper bound.`,
		Example: "  learner privacy calibrate --users 1000 --dim 100 --epsilon 1 --delta 1e-6 --json",
		Args:    cobra.NoArgs,
	}
	c.AddCommand(newCalibrate(), newPrivacyEpsilon(), newPrivacyDelta(), newPrivacyCheck())
	return c
}

// releaseFlags are the public parameters of one round's release.
type releaseFlags struct {
	users, units, trials, floorTrials uint64
	dim, levels, rounds               int
	p                                 float64
	trust, honest                     string
	minimizer                         bool
	json                              cli.JSON
}

func (f *releaseFlags) common(flags *pflag.FlagSet) {
	flags.Uint64Var(&f.users, "users", 0, "`N` reports of one round, each of another user")
	flags.Uint64Var(&f.units, "units", 1,
		"`K` units that a report is about, such as the rows of a silo; guarantees are for one of them")
	flags.BoolVar(&f.minimizer, "minimizer", false,
		"a report is one vector of all its units, as the minimisers of prox are")
	flags.IntVar(&f.dim, "dim", 0, "`D` coordinates of a report")
	flags.StringVar(&f.trust, "trust", "shuffle",
		"who is trusted with what: shuffle, pan, shuffle+pan, local, which relies upon nobody, or split, upon one of two operators")
	flags.StringVar(&f.honest, "honest-fraction", "1",
		"share of the users of every cohort whose noise is relied upon, such as 0.9 or 9/10")
	flags.IntVar(&f.rounds, "rounds-per-user", 1, "`T` rounds that one user takes part in")
	f.json.Flag(flags)
}

func (f *releaseFlags) mechanism(flags *pflag.FlagSet) {
	f.common(flags)
	flags.IntVar(&f.levels, "g", 0, "`G` levels of the rounding")
	flags.Uint64Var(&f.trials, "b", 0, "`B` noise trials of one user for one coordinate")
	flags.Float64Var(&f.p, "p", 0.5, "`P` success probability of a trial, a multiple of 2^-24")
	flags.Uint64Var(&f.floorTrials, "floor-trials", 0, "`NF` trials of one floor, for trust pan, shuffle+pan and split")
}

// adversary parses the flags for the trust model and the honest fraction. It refuses numbers of units and rounds
// below 1, which the accountant would read as its default.
func (f *releaseFlags) adversary() (trust accounting.Trust, honest accounting.Fraction, err error) {
	if f.units < 1 {
		return trust, honest, cli.Usagef("--units 0: want at least 1")
	}
	if f.rounds < 1 {
		return trust, honest, cli.Usagef("--rounds-per-user %d: want at least 1", f.rounds)
	}
	if trust, err = accounting.ParseTrust(f.trust); err != nil {
		return trust, honest, cli.Usagef("--trust: %w", err)
	}
	if honest, err = accounting.ParseFraction(f.honest); err != nil {
		return trust, honest, cli.Usagef("--honest-fraction: %w", err)
	}
	return trust, honest, nil
}

func (f *releaseFlags) release() (accounting.Release, error) {
	trust, honest, err := f.adversary()
	if err != nil {
		return accounting.Release{}, err
	}
	r := accounting.Release{Trust: trust, Users: f.users, Dim: f.dim, Levels: f.levels, Trials: f.trials, P: f.p,
		FloorTrials: f.floorTrials, HonestFraction: honest, Rounds: f.rounds, Units: f.units, Minimizer: f.minimizer}
	return r, cli.Usage(r.Validate())
}

func newCalibrate() *cobra.Command {
	var (
		f             releaseFlags
		epsilon       float64
		delta         float64
		maxBits       int
		coin, profile string
	)
	c := &cobra.Command{
		Use:     "calibrate --users N --dim D --epsilon E --delta D",
		Short:   "the least noise for a privacy target",
		Example: "  learner privacy calibrate --users 1000 --dim 100 --epsilon 1 --delta 1e-6",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			trust, honest, err := f.adversary()
			if err != nil {
				return err
			}
			q := accounting.Request{Trust: trust, Users: f.users, Dim: f.dim, Epsilon: epsilon, Delta: delta,
				HonestFraction: honest,
				Rounds:         f.rounds, Units: f.units, Minimizer: f.minimizer, MaxBits: maxBits}
			if q.Coin, err = accounting.ParseCoin(coin); err != nil {
				return cli.Usagef("--coin: %w", err)
			}
			if q.Profile, err = accounting.ParseConstants(profile); err != nil {
				return cli.Usagef("--profile: %w", err)
			}
			if err := q.Validate(); err != nil {
				return cli.Usage(err)
			}
			plan, err := accounting.Calibrate(q) // fails only if no plan meets the request
			if err != nil {
				return cli.Usage(err)
			}
			plan = run.WithParts(plan, false)
			return f.json.Print(c.OutOrStdout(), plan, func(w io.Writer) error { return printCalibration(w, plan) })
		},
	}
	f.common(c.Flags())
	c.Flags().Float64Var(&epsilon, "epsilon", 1, "`E`psilon of all rounds of one user together")
	c.Flags().Float64Var(&delta, "delta", 1e-6, "`DELTA` of the guarantee")
	c.Flags().IntVar(&maxBits, "max-bits", 0, "most bits `M` of a report for one coordinate, g+b; 0 is no limit")
	c.Flags().StringVar(&coin, "coin", "fair",
		"fair: coins of p = 1/2 where that costs at most 3 % in error; any: p is free")
	c.Flags().StringVar(&profile, "profile", "numeric",
		"numeric: the proved numeric bound; paper: the paper's closed-form constants")
	return c
}

func printCalibration(w io.Writer, p accounting.Plan) error {
	_, err := fmt.Fprintf(w, `epsilon %s, delta %g, trust %v%s
g = %d, b = %d, p = %.7g, floors %d trials each
report       %s a coordinate, %s
noise        %.5g of the clip norm, standard deviation of one coordinate of the mean
rounding     %.5g at most
the floor    %.5g, the analytic Gaussian mechanism
`, cli.Upper(p.Epsilon, 6), p.Delta, p.Trust, p.Trust.Assuming(p.HonestFraction, "users"), p.Levels, p.Trials, p.P, p.FloorTrials,
		inBits(p), inBytes(p, ""), p.NoiseStd, p.RoundingStd, p.GaussianNoiseStd)
	if err == nil && p.Units > 1 {
		_, err = fmt.Fprintf(w, "a report is about %d units; epsilon is that of one of them\n", p.Units)
	}
	if err == nil && p.Profile == accounting.Paper {
		proved := "no finite epsilon"
		if p.ProvedEpsilon != nil {
			proved = "epsilon " + cli.Upper(*p.ProvedEpsilon, 4)
		}
		_, err = fmt.Fprintf(w, "these are the paper's constants; Theorem A proves %s for them; runnable: %t\n", proved,
			p.Runnable)
	}
	return err
}

func newPrivacyEpsilon() *cobra.Command {
	var (
		f     releaseFlags
		delta float64
	)
	c := &cobra.Command{
		Use:     "epsilon --users N --dim D --g G --b B --p P --delta D",
		Short:   "what a release costs at delta",
		Example: "  learner privacy epsilon --users 1000 --dim 100 --g 19 --b 26 --p 0.5 --delta 1e-6",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := f.release()
			if err != nil {
				return err
			}
			if !(delta > 0 && delta < 1) {
				return cli.Usagef("--delta %v: want a number in (0, 1)", delta)
			}
			g, err := r.Epsilon(delta)
			if err != nil {
				return err
			}
			return f.json.Print(c.OutOrStdout(), g, func(w io.Writer) error {
				if math.IsInf(g.Epsilon, 0) {
					_, err := fmt.Fprintf(w, "no finite epsilon at delta %g: too little noise\n", delta)
					return err
				}
				_, err := fmt.Fprintf(w, "epsilon %s at delta %g (learner alone: %s)%s\n", cli.Upper(g.Epsilon, 6), delta,
					cli.Upper(g.Learner, 6),
					r.Trust.Assuming(r.HonestFraction, "users"))
				return err
			})
		},
	}
	f.mechanism(c.Flags())
	c.Flags().Float64Var(&delta, "delta", 1e-6, "`DELTA` of the guarantee")
	return c
}

func newPrivacyDelta() *cobra.Command {
	var (
		f       releaseFlags
		epsilon float64
	)
	c := &cobra.Command{
		Use:     "delta --users N --dim D --g G --b B --p P --epsilon E",
		Short:   "the delta of a release at epsilon",
		Example: "  learner privacy delta --users 1000 --dim 100 --g 19 --b 26 --p 0.5 --epsilon 1",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := f.release()
			if err != nil {
				return err
			}
			if !(epsilon >= 0) || math.IsInf(epsilon, 0) {
				return cli.Usagef("--epsilon %v: want a finite number of at least 0", epsilon)
			}
			d, err := r.Delta(epsilon)
			if err != nil {
				return err
			}
			return f.json.Print(c.OutOrStdout(), d, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "delta %s at epsilon %g (learner alone: %s)%s\n", cli.Upper(d.Delta, 6), epsilon,
					cli.Upper(d.Learner, 6),
					r.Trust.Assuming(r.HonestFraction, "users"))
				return err
			})
		},
	}
	f.mechanism(c.Flags())
	c.Flags().Float64Var(&epsilon, "epsilon", 1, "`E`psilon")
	return c
}

func newPrivacyCheck() *cobra.Command {
	var asJSON cli.JSON
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "compute the rows of a file of reference samples",
		Long: `check reads {"rows": [...]} of reference samples (kinds delta, eps, calibrate, midbatch,
topup, gauss, plan, local), as in randomizer/accounting/testdata/accounting-samples.json
and local-samples.json, and prints the accountant's value for each.`,
		Example: "  learner privacy check randomizer/accounting/testdata/accounting-samples.json --json",
		Args:    cli.OneArg("FILE", "one file of samples"),
		RunE: func(c *cobra.Command, args []string) error {
			data, err := os.ReadFile(args[0])
			if err != nil {
				return cli.Usage(err)
			}
			values, err := checkRows(data)
			if err != nil {
				return cli.Usagef("%s: %w", args[0], err)
			}
			return asJSON.Print(c.OutOrStdout(), values, func(w io.Writer) error {
				for _, v := range values {
					value := "no finite value"
					if v.Value != nil {
						value = cli.Upper(*v.Value, 9) // of all kinds: more noise than needed is no harm either
					}
					if _, err := fmt.Fprintf(w, "%s\t%s\n", v.ID, value); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	asJSON.Flag(c.Flags())
	return c
}

// A checkedRow is the accountant's answer to one sample; Value is null where nothing finite is proved.
type checkedRow struct {
	ID    string   `json:"id"`
	Value *float64 `json:"value"`
}

func checkRows(data []byte) ([]checkedRow, error) {
	samples, err := accounting.ParseSamples(data)
	if err != nil {
		return nil, err
	}
	out := make([]checkedRow, 0, len(samples))
	for i, s := range samples {
		value, err := s.Evaluate()
		if err != nil {
			return nil, fmt.Errorf("row %d (%s): %w", i, s.ID, err)
		}
		row := checkedRow{ID: s.ID}
		if !math.IsInf(value, 0) {
			row.Value = &value
		}
		out = append(out, row)
	}
	return out, nil
}
