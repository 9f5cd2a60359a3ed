package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/panlearn/panlearn/internal/picture"
)

// A cell holds the mean and standard deviation of a contender's result at an epsilon, over trials.
type cell struct{ mean, sd float64 }

// A table holds the results for one number of silos: for each contender a row of cells, one an epsilon.
type table struct {
	*setting
	trials int
	rows   map[string][]cell
}

// bar returns half the width of the interval of 90 % for the mean over so many trials, by Student's law.
func (c cell) bar(trials int) float64 {
	if trials < 2 {
		return 0
	}
	n := float64(trials)
	return distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(0.95) * c.sd / math.Sqrt(n)
}

// firstTried is the first trial of the choices, which no trial of a table is among.
const firstTried = 1001

// fill runs every contender at every epsilon, and prints the table as it grows.
func (s *setting) fill(only string, seeds int, to, progress io.Writer) (table, error) {
	var trials, tries []trial
	for i := range uint64(seeds) {
		trials = append(trials, s.divide(i+1))
	}
	for i := range uint64(s.tries) {
		tries = append(tries, s.divide(firstTried+i))
	}
	out, ends := table{s, seeds, map[string][]cell{}}, []string(nil)
	fmt.Fprintf(to, "\n%s, N = %d, M = %d, n = %d, delta = %g:\n\n| ", s.name, len(s.silos), s.reports, s.least, s.delta())
	for _, epsilon := range s.epsilons {
		fmt.Fprintf(to, "| %v ", epsilon)
	}
	fmt.Fprintf(to, "|\n| ---%s |\n", strings.Repeat(" | ---", len(s.epsilons)))
	for _, m := range contenders {
		if !strings.Contains(m.name, only) || m.name == releasedMB && s.released == nil || m.own && s.columns != nil {
			continue
		}
		for _, epsilon := range s.epsilons {
			if cells := out.rows[m.name]; m.exact && len(cells) > 0 {
				out.rows[m.name] = append(cells, cells[0])
				continue
			}
			var c choice
			var err error
			if m.own {
				err = s.plan(epsilon)
			} else {
				c, err = s.best(m, tries, epsilon)
			}
			if err != nil {
				return out, err
			}
			if end := atEnds(s.choices(m), c); end != "" && !m.own {
				ends = append(ends, fmt.Sprintf("%s, %v (%s)", m.name, epsilon, end))
			}
			var scores []float64
			began := time.Now()
			for _, t := range trials {
				theta, err := m.run(s.attempt(m, t, epsilon, c))
				if err != nil {
					return out, err
				}
				score, err := s.score(theta, t)
				if err != nil {
					return out, err
				}
				scores = append(scores, score)
			}
			mean, sd := stat.MeanStdDev(scores, nil)
			out.rows[m.name] = append(out.rows[m.name], cell{mean, sd})
			fmt.Fprintf(progress, "%s, N = %d, M = %d, epsilon %v, %s: %.4f (%.4f), L = %.3g, step %.3g, %.3g s a trial\n",
				s.name, len(s.silos), s.reports, epsilon, m.name, mean, sd, c.clip, c.step, time.Since(began).Seconds()/float64(seeds))
		}
		fmt.Fprintf(to, "| %s ", m.name)
		for _, c := range out.rows[m.name] {
			fmt.Fprintf(to, "| %.3f (%.3f) ", c.mean, c.sd)
		}
		fmt.Fprintln(to, "|")
		if m.name == paperMB {
			if err := s.printReal(to); err != nil {
				return out, err
			}
		}
	}
	if len(ends) > 0 {
		fmt.Fprintf(to, "\nChosen at an end of what was tried: %s.\n", strings.Join(ends, "; "))
	}
	return out, nil
}

// printReal prints the epsilon that the paper's noise really has.
func (s *setting) printReal(to io.Writer) error {
	shares := []struct {
		name  string
		value float64
	}{{"rows clipped to L", 1}}
	if s.twice {
		shares[0].name = "gradients up to L"
		shares = append(shares, struct {
			name  string
			value float64
		}{"gradients as long as the loss's can be", s.job.Loss.Lipschitz(1) / 2})
	}
	for _, share := range shares {
		fmt.Fprintf(to, "| its epsilon, %s ", share.name)
		for _, epsilon := range s.epsilons {
			real, err := s.real(epsilon, share.value)
			if err != nil {
				return err
			}
			fmt.Fprintf(to, "| %.3g to %.3g ", real.Lower, real.Upper)
		}
		fmt.Fprintln(to, "|")
	}
	return nil
}

// draw makes a picture of a table.
func (t table) draw(file string) error {
	p := picture.Panel{Title: fmt.Sprintf("%s, %d of %d silos a round", t.name, t.reports, len(t.silos)), X: "epsilon",
		Y: t.measure, LogX: true, Ticks: t.epsilons, Legend: picture.TopRight}
	for i, m := range contenders {
		line := picture.Line{Name: m.name, Color: i, Dots: true, Shape: i}
		for k, c := range t.rows[m.name] {
			line.Points = append(line.Points, picture.Point{X: t.epsilons[k], Y: c.mean, SD: c.bar(t.trials)})
		}
		if m.exact {
			line.Dashes = 1
		}
		p.Lines = append(p.Lines, line)
	}
	return picture.Write(file, p)
}
