package task

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// Version is the only version of the task file that this package reads.
const Version = 1

// A Spec is the public declaration of a task, as in a task file. Load, Parse and ParseCanonical return validated ones
// with every default filled in; a Spec built by hand is checked by Validate.
type Spec struct {
	Version int    `json:"version"`
	Name    string `json:"name"` // [a-z0-9_-]{1,32}, part of every subject on the broker

	Events   Events   `json:"events"`
	Features Features `json:"features"`
	// Intercept is the value of a last coordinate that is the same for every event; 0 leaves it out. Default 1.
	Intercept float64 `json:"intercept"`
	// NormBound bounds the Euclidean norm of the features, the intercept left out; longer ones are scaled down to it on
	// the device. 0, the default, takes the largest norm that the declared bounds allow.
	NormBound float64 `json:"norm_bound"`
	Label     Label   `json:"label"`

	Model   Model   `json:"model"`
	Privacy Privacy `json:"privacy"`
	// Planning and simulating need no IssuerKey.
	Grants    Grants    `json:"grants,omitempty"`
	IssuerKey IssuerKey `json:"issuer_key,omitempty"`
	User      *User     `json:"user,omitempty"` // with privacy.unit user
	Silo      *Silo     `json:"silo,omitempty"` // nil: everybody reports for himself
	Schedule  Schedule  `json:"schedule"`

	// validation declares the scores that reports carry beside the gradient. nil, which no file can declare,
	// means none.
	Validation *validation `json:"validation,omitempty"`

	State *state `json:"state,omitempty"` // not in the canonical form
}

// Events declares how one event is written in a file or stream: one line each, except in idx and parquet.
type Events struct {
	Format Format `json:"format"`
	// Columns names the fields of a line by position, for csv without a header.
	Columns []string `json:"columns,omitempty"`
	// Header reports whether the first line of a csv file names the fields.
	Header bool `json:"header,omitempty"`
	// Separator is one character between the fields of csv. Default ",". Blanks around a field that is not quoted do not
	// count.
	Separator string `json:"separator,omitempty"`
	// Key names the column that identifies an event, for csv, jsonl and parquet; it is no feature. Without it a row is
	// known by its position in the data.
	Key string `json:"key,omitempty"`
	// SkipLines is the number of lines at the beginning of each file, before a header, that are no events. All
	// other lines are events, except empty ones.
	SkipLines int `json:"skip_lines,omitempty"`
	// MaxLine is the longest line in bytes, or the most bytes in the columns of a parquet row; longer ones are invalid
	// rows. Default 65536.
	MaxLine int `json:"max_line"`
}

// DefaultMaxLine is the default of Events.MaxLine, in bytes.
const DefaultMaxLine = 1 << 16

// MaxKey is the length of the longest key of an event, in bytes.
const MaxKey = 256

const maxSkipped = 1 << 10

// Privacy declares the required guarantee. Its words are defined in package accounting.
type Privacy struct {
	Epsilon float64 `json:"epsilon"`
	Delta   float64 `json:"delta"`
	// Trust names who adds noise: shuffle (default), pan, shuffle+pan, local, split.
	Trust accounting.Trust `json:"trust"`
	// Unit is the protected unit: event (default), one row; or user, all rows of one person that enter a
	// report.
	Unit           string         `json:"unit,omitempty"`
	HonestFraction HonestFraction `json:"honest_fraction"` // default 1
	// Coin is fair (default): coins of p = 1/2 where that is cheap; or any: p is free.
	Coin    accounting.CoinPolicy `json:"coin"`
	MaxBits int                   `json:"max_bits"` // most bits g+b of a report for one coordinate; 0, the default, is no limit
	Profile accounting.Constants  `json:"profile"`  // numeric (default), or paper: the closed-form constants
	Seal    string                `json:"seal"`     // hpke (default), or none: the broker's operator is trusted
	// Suite names the encryption of reports: "" is x25519, the default; mlkem768x25519 adds ML-KEM-768. A file may
	// have the numbers of the protocol, 2 and 3.
	Suite string `json:"suite,omitempty"`
	// Operators names the two parties of trust split, whose only suite is mlkem768x25519.
	Operators *Operators `json:"operators,omitempty"`
}

// User names the column with the person of a row, for tasks that protect all rows of a person together.
type User struct {
	Column string `json:"column"` // names the person, for csv, jsonl and parquet; it is no feature
	Items  int    `json:"items"`  // largest number of a person's rows in a report: the first ones
	// Radius is the norm to which the mean gradient of a person is clipped, as a share of the clip norm of a row, in (0,
	// 1]; 0: 1/sqrt(items).
	Radius float64 `json:"radius,omitempty"`
	// Wait is the time from a person's first row of a stream until its report is made; 0: no wait, which only
	// files allow.
	Wait Duration `json:"wait,omitempty"`
}

// Silo declares reporting organisations, each of whose reports is about a block of units: rows, or people.
type Silo struct {
	Count int `json:"count"` // N
	// Units are the fewest units of a silo for which noise is planned. A silo with more uses all of them.
	Units int `json:"units"`
	// Reports is M, the silos of one round; default Count.
	Reports int `json:"reports,omitempty"`
	// Least is the fewest units of a silo that may take part. It adds noise for the units it lacks: under trust local
	// only. Default two thirds of Units, and Units under the other trusts.
	Least int `json:"least,omitempty"`
	// Sample is refused: a block is of fresh rows, or of all that a silo has.
	Sample int `json:"sample,omitempty"`
	// Spread bounds the distance of a silo's mean gradient from the mean over all silos, for plans with fewer
	// reports than silos; utility alone rests on it. 0, the default, is the clip norm.
	Spread float64 `json:"spread,omitempty"`
}

// validate refuses events that are contradictory or out of range. taken lists the fields that the task reads.
func (e Events) validate(taken Schema) error {
	if err := oneOf("events.format", e.Format, Formats()...); err != nil {
		return err
	}
	if e.MaxLine < 1 || e.MaxLine > maxLineLimit {
		return refuse("events.max_line", e.MaxLine, "a number of bytes from 1 to %d", maxLineLimit)
	}
	if e.SkipLines < 0 || e.SkipLines > maxSkipped {
		return refuse("events.skip_lines", e.SkipLines, "a number of lines from 0 to %d", maxSkipped)
	}
	if e.Format.traits().binary && e.SkipLines > 0 {
		return refuse("events.skip_lines", e.SkipLines, "nothing: %s has no lines", e.Format)
	}
	if err := e.validateKey(taken); err != nil {
		return err
	}
	if e.Format != CSV {
		switch {
		case e.Header:
			return refuse("events.header", e.Header, "false: only csv has a header")
		case len(e.Columns) > 0:
			return refuse("events.columns", e.Columns, "nothing: only csv has columns by position")
		case e.Separator != "":
			return refuse("events.separator", e.Separator, "nothing: only csv has separators")
		}
		return nil
	}
	if len(e.Separator) != 1 || strings.ContainsAny(e.Separator, " \"\r\n\x00") || e.Separator[0] >= 0x80 {
		return refuse("events.separator", e.Separator, "one ASCII character, not a blank, a quote or a line break")
	}
	if e.Header == (len(e.Columns) > 0) {
		return refuse("events.columns", e.Columns, "the names of the columns, or events.header: true, and not both")
	}
	for i, c := range e.Columns {
		if err := validateColumnName(fmt.Sprintf("events.columns.%d", i), c, e.Columns[:i]); err != nil {
			return err
		}
	}
	return nil
}

// validateKey refuses a key whose column is also read for another purpose, or that the format cannot have.
func (e Events) validateKey(taken Schema) error {
	if e.Key == "" {
		return nil
	}
	if e.Format.Vectors() {
		return refuse("events.key", e.Key, "nothing: %s has no column for it", e.Format)
	}
	if err := validateColumnName("events.key", e.Key, nil); err != nil {
		return err
	}
	if err := e.validatePresent("events.key", e.Key); err != nil {
		return err
	}
	if e.Key == taken.Label || slices.Contains(taken.Columns, e.Key) {
		return refuse("events.key", e.Key, "a column that is neither a feature nor the label")
	}
	return nil
}

// validatePresent refuses a column that a csv file without header does not have.
func (e Events) validatePresent(path, name string) error {
	if len(e.Columns) > 0 && !slices.Contains(e.Columns, name) {
		return refuse(path, name, "one of events.columns")
	}
	return nil
}

// SetDefaults fills in the default of every field that is zero and has one, and brings the honest fraction into its
// plain form. Parse has done it already. Intercept is left alone, because 0 means none.
func (s *Spec) SetDefaults() {
	or(&s.Events.MaxLine, DefaultMaxLine)
	if s.Events.Format == CSV {
		or(&s.Events.Separator, ",")
	}
	s.Features.setDefaults()
	if s.Model.traits().Labels == convex.Numbers {
		or(&s.Label.Scale, Symmetric)
	}
	or(&s.Model.Set, convex.SetKinds()[0])
	if s.Privacy.Unit == UnitEvent {
		s.Privacy.Unit = "" // one spelling
	}
	s.Silo.setDefaults(&s.Privacy, &s.Schedule)
	or(&s.Privacy.HonestFraction.Fraction, accounting.One)
	if s.Grants == grantsNone {
		s.Grants = "" // one spelling
	}
	or(&s.Privacy.Seal, "hpke")
	if o := s.Privacy.Operators; o != nil && *o == (Operators{}) {
		s.Privacy.Operators = nil // one spelling
	}
	if s.Privacy.Trust.HasOperators() && s.Privacy.Seal == "hpke" {
		or(&s.Privacy.Suite, suiteHybrid)
	}
	s.Privacy.Suite = oneSuite(s.Privacy.Suite)
	s.setDefaultPlan()
	or(&s.Schedule.Deadline, Duration(60*time.Second))
	or(&s.Schedule.Retention, Duration(7*24*time.Hour))
	s.Validation = s.Validation.withDefaults(s.Schedule.Algorithm)
}

func or[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
