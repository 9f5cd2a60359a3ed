package accounting

import (
	"fmt"
	"slices"
	"strings"
)

// A Trust names the parties that lay noise, and thereby the adversaries that a release holds against.
type Trust int

const (
	// Shuffle: every report carries Bin(b, p) per coordinate; the stage adds nothing.
	Shuffle Trust = iota
	// Pan: reports carry no noise; the stage lays one floor before the first
	// and one after the last report.
	Pan
	// ShufflePan: noise in every report and both floors.
	ShufflePan
	// Local: every report carries all the noise that hides what it is about, Bin(b, p) per coordinate. Nobody is
	// relied upon, and the stage adds nothing.
	Local
	// Split: reports carry no noise and are shared between two operators, each of whom lays one floor. One of them may
	// be an adversary, from the start and in every round.
	Split
)

// HasFloors reports whether two floors of noise lie under every total: both the stage's, or one of each operator.
func (t Trust) HasFloors() bool { return t == Pan || t == ShufflePan || t == Split }

// HasIntruder reports whether the trust covers one look into the running totals, between two reports. The attempt that
// was looked into may have died, and its users' reports were seen behind one floor.
func (t Trust) HasIntruder() bool { return t == Pan || t == ShufflePan }

// HasOperators reports whether two operators, neither of whom is trusted, add the reports up.
func (t Trust) HasOperators() bool { return t == Split }

// HasReportNoise reports whether every report carries noise of its own.
func (t Trust) HasReportNoise() bool { return t != Pan && t != Split }

// Assuming returns the assumption that an epsilon rests on, to be written after it: a clause, or nothing for a trust
// that relies on no other user and no operator. reporters names in the plural those who report, such as users. The
// share is of every cohort as it was planned, however few come: users who choose their round can fill one with far
// fewer than that share of all users.
func (t Trust) Assuming(honest Fraction, reporters string) string {
	switch {
	case t == Pan || t == Local:
		return ""
	case t == Split:
		return ", if one of the two operators is honest"
	case honest == One:
		return fmt.Sprintf(", if in every cohort all of the %s planned for are honest", reporters)
	}
	return fmt.Sprintf(", if in every cohort a share %v of the %s planned for is honest", honest, reporters)
}

// CoinPolicy is the planner's choice of the success probability p.
type CoinPolicy int

const (
	// CoinFair takes p = 1/2 where that costs at most 3% in mean squared error
	// against the free choice, else the free choice. Fair noise is the popcount
	// of random bits.
	CoinFair CoinPolicy = iota
	// coinAny takes the smallest p on the grid 2^-24 that meets the target.
	coinAny
)

// Constants names the source of a plan's parameters.
type Constants int

const (
	// Numeric searches the smallest noise that Theorem A proves enough.
	Numeric Constants = iota
	// Paper takes the closed forms of Cheu, Joseph, Mao, Peng, "Shuffle Private
	// Stochastic Convex Optimization", ICLR 2022, Theorem 3.2.
	Paper
)

// words are the names of the values 0, 1, ... of a choice, as task files and commands use them.
type words struct {
	choice string
	names  []string
}

var (
	trusts    = words{"trust", []string{"shuffle", "pan", "shuffle+pan", "local", "split"}}
	coins     = words{"coin", []string{"fair", "any"}}
	constants = words{"profile", []string{"numeric", "paper"}}
)

// A ChoiceError reports a word that names no value of a choice.
type ChoiceError struct {
	Choice, Word string
	Want         string // the words that do
}

func (e *ChoiceError) Error() string {
	return fmt.Sprintf("%s %q: want %s", e.Choice, clip(e.Word), e.Want)
}

func (w words) wanted() string {
	last := len(w.names) - 1
	return strings.Join(w.names[:last], ", ") + " or " + w.names[last]
}

func (w words) name(i int) string {
	if w.validate(i) != nil {
		return fmt.Sprintf("%s(%d)", w.choice, i)
	}
	return w.names[i]
}

func (w words) parse(name string) (int, error) {
	i := slices.Index(w.names, name)
	if i < 0 {
		return 0, &ChoiceError{w.choice, name, w.wanted()}
	}
	return i, nil
}

// read sets a choice by its name, and leaves it alone on error.
func read[T ~int](to *T, w words, text []byte) error {
	i, err := w.parse(string(text))
	if err == nil {
		*to = T(i)
	}
	return err
}

func (w words) validate(i int) error {
	if i < 0 || i >= len(w.names) {
		return fmt.Errorf("%s %d: want %s", w.choice, i, w.wanted())
	}
	return nil
}

// String returns the name.
func (t Trust) String() string { return trusts.name(int(t)) }

// String returns the name.
func (c CoinPolicy) String() string { return coins.name(int(c)) }

// String returns the name.
func (c Constants) String() string { return constants.name(int(c)) }

// ParseTrust reads "shuffle", "pan", "shuffle+pan", "local" or "split".
func ParseTrust(s string) (Trust, error) { i, err := trusts.parse(s); return Trust(i), err }

// ParseCoin reads "fair" or "any".
func ParseCoin(s string) (CoinPolicy, error) { i, err := coins.parse(s); return CoinPolicy(i), err }

// ParseConstants reads the name of a profile, "numeric" or "paper".
func ParseConstants(s string) (Constants, error) {
	i, err := constants.parse(s)
	return Constants(i), err
}

func (t Trust) validate() error { return trusts.validate(int(t)) }

func (c CoinPolicy) validate() error { return coins.validate(int(c)) }

func (c Constants) validate() error { return constants.validate(int(c)) }

// MarshalText implements encoding.TextMarshaler.
func (t Trust) MarshalText() ([]byte, error) { return []byte(t.String()), t.validate() }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Trust) UnmarshalText(text []byte) error { return read(t, trusts, text) }

// MarshalText implements encoding.TextMarshaler.
func (c CoinPolicy) MarshalText() ([]byte, error) { return []byte(c.String()), c.validate() }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *CoinPolicy) UnmarshalText(text []byte) error { return read(c, coins, text) }

// MarshalText implements encoding.TextMarshaler.
func (c Constants) MarshalText() ([]byte, error) { return []byte(c.String()), c.validate() }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Constants) UnmarshalText(text []byte) error { return read(c, constants, text) }

// clip keeps a hostile string out of an error message.
func clip(s string) string {
	if len(s) > 32 {
		return s[:32] + "..."
	}
	return s
}
