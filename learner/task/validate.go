package task

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// Limits of a declaration, far above what a round can carry: they keep arithmetic and memory in bounds.
const (
	maxUsers     = 1<<40 - 1
	maxBits      = 1<<31 - 1
	maxDimension = 1 << 20
	maxLineLimit = 64 << 20
	maxDeadline  = Duration(30 * 24 * time.Hour)
	minRetention = Duration(time.Hour)
	maxRetention = Duration(10 * 365 * 24 * time.Hour)
	maxMagnitude = 1e100 // of bounds, radius and clip norm; squares must stay finite
	maxNorm      = 1e120 // of a feature vector; squares of its products with parameters must stay finite
	maxCount     = 1 << 53
)

var namePattern = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)

// Validate refuses a declaration that is incomplete, contradictory or out of range, with a *FieldError for the first
// such field.
func (s *Spec) Validate() error {
	if s.Version != Version {
		return refuse("version", s.Version, "%d", Version)
	}
	if !namePattern.MatchString(s.Name) {
		return refuse("name", s.Name, "1 to 32 of a-z, 0-9, _ and -")
	}
	if err := validateLeaves("", reflect.ValueOf(s).Elem()); err != nil {
		return err
	}
	for _, check := range []func() error{
		s.validateCurated,
		s.Schedule.validatePlan,
		func() error { return s.Events.validate(s.Schema()) },
		func() error { return s.Features.validate(s.Events) },
		func() error { return s.Model.validate(s.Label, s.Schedule.practical()) },
		func() error { return s.Label.validate(s.Events, &s.Features, s.Model.Loss) },
		func() error { return s.Model.validateLoss(s.Label, s.dimension()) },
		func() error { return s.Privacy.validate(s.Silo != nil || s.Schedule.Interactive) },
		func() error { return s.User.validate(s.Privacy.Unit, s.Schema()) },
		func() error { return s.Silo.validate(s.Privacy.Trust, s.Schedule) },
		func() error { return s.Grants.validate(s.IssuerKey, s.Silo) },
		func() error { return s.Schedule.validate(s.conditions()) },
		func() error { return s.Features.validateBound(s.NormBound) },
		s.Validation.validate,
		s.Kept().validate,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// validateLeaves refuses numbers that are not finite, choices without a word and text that is not UTF-8, anywhere in
// the declaration. (Text that is not UTF-8 has no JSON, so the canonical form would change it.)
func validateLeaves(path string, v reflect.Value) error {
	if v.Type() == reflect.TypeFor[File]() || v.Type() == reflect.TypeFor[Public]() ||
		v.Type() == reflect.TypeFor[HonestFraction]() {
		return nil // it was checked as text
	}
	switch v.Kind() {
	case reflect.Int:
		if word, ok := v.Interface().(encoding.TextMarshaler); ok {
			if _, err := word.MarshalText(); err != nil {
				return refuse(path, v.Int(), "a value that has a word: %v", err)
			}
		}
	case reflect.Float64:
		if f := v.Float(); !(math.Abs(f) <= maxMagnitude) {
			return refuse(path, f, "a finite number of magnitude at most %g", maxMagnitude)
		}
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return refuse(path, v.String(), "text in UTF-8")
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := validateLeaves(join(path, fmt.Sprint(i)), v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return validateLeaves(path, v.Elem())
		}
	case reflect.Struct:
		for i, key := range keysOf(v.Type()) {
			if err := validateLeaves(join(path, key), v.Field(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// validate refuses a guarantee that is contradictory or out of range. many reports whether silos report, or users in
// every round.
func (p Privacy) validate(many bool) error {
	if p.Epsilon <= 0 || p.Epsilon > accounting.MaxEpsilon {
		return refuse("privacy.epsilon", p.Epsilon, "a number > 0 and at most %d", accounting.MaxEpsilon)
	}
	if p.Delta <= 0 || p.Delta >= 1 {
		return refuse("privacy.delta", p.Delta, "a number in (0, 1)")
	}
	if p.HonestFraction.IsZero() {
		return refuse("privacy.honest_fraction", p.HonestFraction, "a fraction in (0, 1]")
	}
	if p.MaxBits < 0 || p.MaxBits > maxBits || (p.MaxBits == 1 && p.Trust.HasReportNoise()) {
		return refuse("privacy.max_bits", p.MaxBits, "a whole number from 2 to %d, or 0 for no limit", maxBits)
	}
	if err := p.validateLocal(many); err != nil {
		return err
	}
	if err := p.validateSuite(); err != nil {
		return err
	}
	if err := p.validateSplit(); err != nil {
		return err
	}
	return oneOf("privacy.seal", p.Seal, "hpke", "none")
}

func oneOf[T ~string](path string, value T, accepted ...T) error {
	words := make([]string, len(accepted))
	for i, a := range accepted {
		if a == value {
			return nil
		}
		words[i] = string(a)
	}
	return refuse(path, value, "one of %s", strings.Join(words, ", "))
}
