package draft

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/panlearn/panlearn/learner/convex"
)

// Limits of what is taken for classes.
const (
	mostClasses    = 50 // words
	mostNumberKind = 10 // whole numbers
)

// A target is the label with the loss that goes with it.
type target struct {
	label []field // keys of the section label, without the column
	model []field
	loss  string
	kind  string // what the label is, in words
	note  string // what else could be chosen
	said  string // what has to be known at once: which class is positive

	classes int // different labels
}

// positives and negatives are words that name the positive and the negative one of two classes.
var (
	positives = []string{"1", "+1", "yes", "y", "true", "t", "positive", "pos", "on"}
	negatives = []string{"0", "-1", "no", "n", "false", "f", "negative", "neg", "off"}
)

// targetOf takes the loss that was asked for, or the one that goes with what the label holds.
func targetOf(c *column, loss string) (target, error) {
	if err := c.unreadable(); err != nil {
		return target{}, err
	}
	words := c.classes()
	numbers := c.numeric() && len(c.others) == 0
	switch n := len(words); {
	case c.foreign > 0:
		return target{}, fmt.Errorf("label %s is not UTF-8: convert the file, such as with iconv -f latin1 -t utf-8",
			text(c.name))
	case n == 0 || n == 1 && !c.many:
		return target{}, fmt.Errorf("label %s has %s in the sample: want two values or more, or another --label",
			text(c.name), plural(n, "value"))
	case numbers && c.identifies() != "":
		return target{}, fmt.Errorf("label %s is %s: want another --label", text(c.name), c.identifies())
	case loss != "" && !slices.Contains(convex.LossNames(), loss):
		return target{}, fmt.Errorf("loss %q: want one of %s", loss, strings.Join(convex.LossNames(), ", "))
	case loss == "" && n == 2 && !c.many:
		loss = convex.First(convex.TwoClasses).Name
	case loss == "" && numbers && c.whole && n <= mostNumberKind && !c.many, loss == "" && !numbers && n <= mostClasses &&
		!c.many:
		loss = convex.First(convex.ManyClasses).Name
	case loss == "" && !numbers:
		return target{},
			fmt.Errorf("label %s has %d different words: want at most %d classes, or numbers, or another --label", text(c.name),
				n, mostClasses)
	case loss == "":
		loss = convex.First(convex.Numbers).Name
	}
	t := target{loss: loss, model: []field{{"loss", loss}}, classes: len(words)}
	switch convex.TraitsOf(loss).Labels {
	case convex.TwoClasses:
		if len(words) != 2 || c.many {
			return target{}, fmt.Errorf("loss %s: label %s has %d values, want two", loss, text(c.name), len(words))
		}
		t.two(c, words)
	case convex.ManyClasses:
		if len(words) > mostClasses || c.many {
			return target{}, fmt.Errorf("loss %s: label %s has %d values, want at most %d", loss, text(c.name), len(words),
				mostClasses)
		}
		t.label, t.kind = []field{{"classes", texts(words)}}, fmt.Sprintf("%d classes", len(words))
		if numbers {
			b := outward(c.low, c.high, c.whole)
			t.note = fmt.Sprintf(
				"As a number, which knows that they are in an order, it would be {min: %s, max: %s} and loss: %s.",
				decimal(b.low), decimal(b.high), convex.First(convex.Numbers).Name)
		}
	default:
		if !numbers {
			return target{}, fmt.Errorf("loss %s: label %s holds words, want numbers", loss, text(c.name))
		}
		return t, t.number(c)
	}
	return t, nil
}

// classes returns the different labels, each as it is written most often: +1, 1 and 1.0 are one.
func (c *column) classes() []string {
	var out []string
	seen := map[float64]bool{}
	for _, w := range c.ranked() {
		if !utf8.ValidString(w) {
			continue
		}
		if x, ok := number(w); ok {
			if seen[x] {
				continue
			}
			seen[x] = true
		}
		out = append(out, w)
	}
	return out
}

// two chooses the positive one of two classes: by their words, where one is in positives and the other in negatives, or
// one begins with > and the other with <; else the rarer one.
func (t *target) two(c *column, words []string) {
	a, b := words[0], words[1]
	why := "the rarer one"
	is := func(w string, list []string) bool { return slices.Contains(list, strings.ToLower(w)) }
	switch {
	case is(a, positives) && is(b, negatives), strings.HasPrefix(a, ">") && strings.HasPrefix(b, "<"):
		a, b, why = b, a, "by the words"
	case is(b, positives) && is(a, negatives), strings.HasPrefix(b, ">") && strings.HasPrefix(a, "<"):
		why = "by the words"
	case c.words[a] < c.words[b]:
		a, b = b, a
	case c.words[a] == c.words[b]:
		why = "either would do"
	}
	t.kind = "two classes"
	t.label = []field{{"positive", texts([]string{b})}, {"negative", texts([]string{a})}}
	t.said = fmt.Sprintf("the positive class is %s, %s: %d %% of the rows", text(b), why, share(c.words[b], c.present()))
	t.parameters(0)
}

// number declares the bounds of a number or the largest count.
func (t *target) number(c *column) error {
	b := outward(c.low, c.high, c.whole)
	t.kind = "a number from " + decimal(c.low) + " to " + decimal(c.high)
	count := c.whole && c.low >= 0
	if convex.TraitsOf(t.loss).Labels == convex.Counts {
		if !count {
			return fmt.Errorf("loss %s: want a label of counts, whole numbers from 0", t.loss)
		}
		t.kind = "a count"
		t.label = []field{{"max", decimal(b.high)}}
	} else {
		t.label = []field{{"min", decimal(b.low)}, {"max", decimal(b.high)}}
		if count && c.low < c.high/10 {
			of := convex.First(convex.Counts)
			t.note = fmt.Sprintf("They look like counts: loss: %s with %s: %s, and label: max: %s alone, learns their logarithm.",
				of.Name, of.Draft.Parameter, decimal(of.Draft.Value(b.high)), decimal(b.high))
		}
	}
	t.label = c.withMarks(t.label)
	t.parameters(outward(c.low, c.high, true).high)
	return nil
}

// parameters sets the key of the model that a loss cannot do without, for labels of at most high; of classes 0.
func (t *target) parameters(high float64) {
	if d := convex.TraitsOf(t.loss).Draft; d.Parameter != "" {
		t.model = append(t.model, field{d.Parameter, decimal(d.Value(high))})
		t.note = d.Note
	}
}
