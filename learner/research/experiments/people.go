package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/research/curator"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// The simulated people of the tables of docs/proofs/curator.md.
const (
	peopleDim   = 10
	peopleDelta = 1e-6
	peopleSet   = 1.0 // how far from 0 a model may be
)

var (
	peopleEpsilons = []float64{1, 4, 8}
	peopleCounts   = []int{1_000, 10_000, 100_000}
	peopleItems    = []int{16, 256, 4_096}
)

// peopleOf returns the public numbers of a squared loss on features of norm 1, without a ridge, or with one
// of the loss's own smoothness.
func peopleOf(n, m int, epsilon float64, ridge bool) curator.Public {
	p := curator.Public{People: n, Items: m, Dim: peopleDim, Lipschitz: peopleLipschitz,
		Smoothness: 1, Set: convex.Ball{R: peopleSet}, Budget: accounting.Budget{Epsilon: epsilon, Delta: peopleDelta}}
	if ridge {
		p.Ridge = p.Smoothness
	}
	return p
}

// people prints the tables: sizes, crossovers of noise, noise of one gradient, planning bounds, and what runs lose
// and how much noise they have. part names one of them; of and only restrict runs to a number of people, and to
// contenders whose names have a text in them.
func people(to, progress io.Writer, part string, seeds int, of, only string) error {
	parts := []struct {
		name  string
		print func() error
	}{
		{"sizes", func() error { printSizes(to); return nil }},
		{"crossovers", func() error { return printCrossovers(to) }},
		{"radius", func() error { return printRadius(to) }},
		{"bounds", func() error { printBounds(to); return nil }},
		{"crossed", func() error { return printCrossed(to, progress, seeds, only) }},
		{"runs", func() error { return printRuns(to, progress, seeds, of, only) }},
	}
	known := false
	for _, one := range parts {
		if part != "" && part != one.name {
			continue
		}
		known = true
		if err := one.print(); err != nil {
			return err
		}
	}
	if !known {
		return fmt.Errorf("people %s: want sizes, crossovers, radius, bounds, crossed or runs", part)
	}
	return nil
}

// printSizes prints the table of the smallest numbers of people.
func printSizes(to io.Writer) {
	fmt.Fprintf(to,
		"\n| from how many people on, delta %g, 16 items, d %d | epsilon 1 | 4 | 8 |\n| --- | --- | --- | --- |\n",
		peopleDelta, peopleDim)
	var of [3][]curator.Size
	for i, epsilon := range peopleEpsilons {
		of[i] = curator.Sizes(accounting.Budget{Epsilon: epsilon, Delta: peopleDelta}, 16, peopleDim, 1e-3)
	}
	for k, s := range of[0] {
		fmt.Fprintf(to, "| %s%s", s.Algorithm, map[bool]string{true: ", paper's constants"}[s.Paper])
		for i := range of {
			fmt.Fprintf(to, " | %d", of[i][k].Least)
		}
		fmt.Fprintln(to, " |")
	}
}

// printCrossovers prints two tables: from how many items of a person on a method has less noise than a person
// as one item, and where theory puts that number.
func printCrossovers(to io.Writer) error {
	many := []int{1_000, 5_000, 10_000, 100_000}
	fmt.Fprint(to, "\n| epsilon 1 / 4 / 8")
	for _, n := range many {
		fmt.Fprintf(to, " | %d people", n)
	}
	fmt.Fprintln(to, " |\n| --- | --- | --- | --- | --- |")
	for _, c := range curator.Contests() {
		fmt.Fprintf(to, "| %s", contestName(c))
		for _, n := range many {
			fmt.Fprintf(to, " | %s", threeOf(func(p curator.Public) string { return items(c.From(p)) }, n))
		}
		fmt.Fprintln(to, " |")
	}
	fmt.Fprintln(to,
		"\n| epsilon 1 / 4 / 8 | people | by hand | found | found / by hand |\n| --- | --- | --- | --- | --- |")
	for _, c := range curator.Contests() {
		hand, known := byHand[contestName(c)]
		if !known {
			continue
		}
		line := func(name string, found func(p curator.Public) int) {
			i := -1
			fmt.Fprintf(to, "| %s | %d | %s | %s | %s |\n", name, hand.people,
				threeOf(func(curator.Public) string { i++; return items(hand.from[i%3]) }, hand.people),
				threeOf(func(p curator.Public) string { return items(found(p)) }, hand.people),
				threeOf(func(p curator.Public) string {
					i++
					if found(p) == 0 {
						return "-"
					}
					return fmt.Sprintf("%.2f", float64(found(p))/float64(hand.from[i%3]))
				}, hand.people))
		}
		name := contestName(c)
		if c.Method == "gradscore" {
			line(name+", if noise fell like the root of items from 16 on", func(p curator.Public) int { return int(c.Root(p)) })
			name += ", as it falls"
		}
		line(name, c.From)
	}
	of := [3]string{}
	for i, epsilon := range peopleEpsilons {
		from, err := measured("gradscore", peopleOf(10_000, 1, epsilon, true))
		if err != nil {
			return err
		}
		of[i] = items(from)
	}
	fmt.Fprintf(to,
		"\nMeasured on the lattice, by the plans of `gradscore` and of `output` at 10,000 people and a ridge of the loss's own smoothness: %s items.\n", strings.Join(of[:], " / "))
	return nil
}

// byHand holds the numbers of rows at which the theorems put crossovers at epsilon 1, 4 and 8, worked out
// independently; gradscore's follow from its noise at 16 items, as if that fell like the root.
var byHand = map[string]struct {
	people int
	from   [3]int
}{
	"`gradscore`":                   {10_000, [3]int{1_040_000, 104_000, 35_000}},
	"`deletion`, paper's constants": {10_000, [3]int{14_200_000_000, 365_000_000, 74_700_000}},
	"`deletion`":                    {10_000, [3]int{60_000_000, 1_770_000, 350_000}},
	"`filtered`":                    {5_000, [3]int{2195, 1545, 1399}},
}

func contestName(c curator.Contest) string {
	return "`" + c.Method + "`" + map[bool]string{true: ", paper's constants"}[c.Paper]
}

// threeOf joins the texts of say for n people at every epsilon.
func threeOf(say func(p curator.Public) string, n int) string {
	var of []string
	for _, epsilon := range peopleEpsilons {
		of = append(of, say(peopleOf(n, 16, epsilon, true)))
	}
	return strings.Join(of, " / ")
}

// items returns a number of rows with three digits.
func items(n int) string {
	switch text := fmt.Sprintf("%.3g", float64(n)); {
	case n == 0:
		return "never"
	case n < 100_000:
		v, _ := strconv.ParseFloat(text, 64)
		return strconv.Itoa(int(v))
	default:
		return strings.NewReplacer("e+0", "e", "e+", "e").Replace(text)
	}
}

// measured returns the number of items from which on the plan of a method has no more noise than that of one
// release of a minimiser, to a hundredth; 0: none has.
func measured(method string, p curator.Public) (int, error) {
	m, known := curator.Of(method)
	base, _ := curator.Of("output")
	if !known {
		return 0, nil
	}
	ratio := func(items float64) (float64, error) {
		q := p
		q.Items = int(items)
		a, err := m.Plan(q)
		if err != nil {
			return 0, err
		}
		b, err := base.Plan(q)
		if err != nil {
			return 0, err
		}
		return a.NoiseStd / b.NoiseStd, nil
	}
	low, high := 1.0, float64(1<<30)
	at, err := ratio(high)
	if err != nil || at > 1 {
		return 0, err
	}
	for high > 1.01*low {
		middle := math.Sqrt(low * high)
		if at, err = ratio(middle); err != nil {
			return 0, err
		}
		if at > 1 {
			low = middle
		} else {
			high = middle
		}
	}
	return int(high), nil
}

// printRadius prints the table of the noise of one mean gradient of everybody's, with people's means cut to a
// radius as the pipeline plans it in many passes, and filtered, in units of the clip norm.
func printRadius(to io.Writer) error {
	fmt.Fprintln(to,
		"\n| noise of a mean gradient of everybody, epsilon 1 | items | `user.radius` 1, a person as one item | `user.radius` 1/sqrt(items) | rounds | filtered, as many rounds |\n| --- | --- | --- | --- | --- | --- |")
	for _, n := range peopleCounts {
		for _, m := range peopleItems {
			whole, err := inOnePlace(n, m, 1, 0, 1)
			if err != nil {
				return err
			}
			cut, err := inOnePlace(n, m, 1, 0, 1/math.Sqrt(float64(m)))
			if err != nil {
				return err
			}
			noise, rounds := radiusNoise(whole)
			less, _ := radiusNoise(cut)
			filtered := curator.FilteredGradientNoise(peopleOf(n, m, 1, false), int(rounds))
			fmt.Fprintf(to, "| %d people | %d | %.3g | %.3g | %d | %s |\n", n, m, noise, less, rounds, number(filtered))
		}
	}
	return nil
}

func number(x float64) string {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%.3g", x)
}

// printBounds prints the table of planning bounds, in units of the clip norm times the distance of the best
// model.
func printBounds(to io.Writer) {
	fmt.Fprintln(to,
		"\n| planning bound, epsilon 1 (4, 8) | items | a person as one item (B0) | one step a person (B1) | groups |\n| --- | --- | --- | --- | --- |")
	for _, n := range peopleCounts {
		for _, m := range peopleItems {
			fmt.Fprintf(to, "| %d people | %d", n, m)
			for _, bound := range []func(curator.Public) float64{curator.PersonBound, curator.StepBound, curator.GroupBound} {
				var of [3]string
				for i, epsilon := range peopleEpsilons {
					of[i] = number(bound(peopleOf(n, m, epsilon, false)))
				}
				fmt.Fprintf(to, " | %s (%s, %s)", of[0], of[1], of[2])
			}
			fmt.Fprintln(to, " |")
		}
	}
}
