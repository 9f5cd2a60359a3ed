package consent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// fields holds the keys of a policy file. Each sets a field from a value as YAML has it, or returns an error that
// names what it accepts.
var fields = map[string]func(p *Policy, value any) error{
	"tasks": func(p *Policy, v any) error {
		return texts(v, &p.Tasks, func(s string) (string, error) { return s, nil })
	},
	"task_hashes":       func(p *Policy, v any) error { return texts(v, &p.TaskHashes, fingerprint) },
	"max_epsilon":       func(p *Policy, v any) error { return number(v, &p.MaxEpsilon) },
	"max_delta":         func(p *Policy, v any) error { return number(v, &p.MaxDelta) },
	"max_silo_epsilon":  func(p *Policy, v any) error { return number(v, &p.MaxSiloEpsilon) },
	"max_total_epsilon": func(p *Policy, v any) error { return number(v, &p.MaxTotalEpsilon) },
	"max_total_delta":   func(p *Policy, v any) error { return number(v, &p.MaxTotalDelta) },
	"period": func(p *Policy, v any) error {
		return text(v, &p.Period, time.ParseDuration,
			"a duration such as 720h")
	},
	"honest_fraction": func(p *Policy, v any) error {
		if f, ok := v.(float64); ok {
			v = fmt.Sprint(f) // a decimal may be written without quotes
		}
		if n, ok := v.(uint64); ok {
			v = fmt.Sprint(n)
		}
		return text(v, &p.HonestFraction, accounting.ParseFraction, "a decimal or a/b in (0, 1]")
	},
	"min_cohort": func(p *Policy, v any) error { return count(v, &p.MinCohort) },
	"own_share":  func(p *Policy, v any) error { return number(v, &p.OwnShare) },
	"task_hash": func(p *Policy, v any) error {
		return text(v, &p.TaskHash, fingerprint,
			"64 hexadecimal digits")
	},
	"learner_key": func(p *Policy, v any) error {
		return text(v, &p.LearnerKey, fingerprint,
			"64 hexadecimal digits")
	},
	"stage_key": func(p *Policy, v any) error {
		return text(v, &p.StageKey, fingerprint,
			"64 hexadecimal digits")
	},
	"helper_key": func(p *Policy, v any) error {
		return text(v, &p.HelperKey, fingerprint,
			"64 hexadecimal digits")
	},
	"forbid_one_operator": func(p *Policy, v any) error { return flag(v, &p.ForbidOneOperator) },
	"forbid_first_use":    func(p *Policy, v any) error { return flag(v, &p.ForbidFirstUse) },
	"allow_plaintext":     func(p *Policy, v any) error { return flag(v, &p.AllowPlaintext) },
	"max_refunds":         func(p *Policy, v any) error { return limit(v, &p.MaxRefunds) },
	"max_reports":         func(p *Policy, v any) error { return limit(v, &p.MaxReports) },
	"max_attempts":        func(p *Policy, v any) error { return limit(v, &p.MaxAttempts) },
	"max_rounds_per_user": func(p *Policy, v any) error { return limit(v, &p.MaxRoundsPerUser) },
}

// ParsePolicy reads a policy file: one YAML document whose keys are the fields of Policy, such as max_total_epsilon.
// Every error names the key: one that is unknown or there twice, a value of another kind, out of range or not a
// number.
func ParsePolicy(data []byte) (Policy, error) {
	var raw map[string]any
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&raw); err != nil && !errors.Is(err, io.EOF) { // an empty file is the zero policy
		return Policy{}, fmt.Errorf("policy: %w", err)
	}
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) {
		return Policy{}, errors.New("policy: more than one document: want one")
	}
	var p Policy
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		set, known := fields[key]
		if !known {
			return Policy{}, fmt.Errorf("policy: unknown key %q: want one of %s", key,
				strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		}
		if err := set(&p, raw[key]); err != nil {
			return Policy{}, fmt.Errorf("policy: %s: want %w", key, err)
		}
	}
	if err := p.Validate(); err != nil {
		return Policy{}, err
	}
	return p, nil
}

func number(v any, into *float64) error {
	switch v := v.(type) {
	case float64:
		*into = v
	case uint64:
		*into = float64(v)
	case int64:
		*into = float64(v)
	case string: // 1e-6 is a string to the decoder
		f, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return errors.New("a number")
		}
		*into = f
	default:
		return errors.New("a number")
	}
	return nil
}

func count(v any, into *uint64) error {
	n, ok := v.(uint64)
	if !ok {
		return errors.New("a whole number of at least 0")
	}
	*into = n
	return nil
}

func limit(v any, into **uint32) error {
	n, ok := v.(uint64)
	if !ok || n > 1<<32-1 {
		return errors.New("a whole number from 0 to 4294967295")
	}
	short := uint32(n)
	*into = &short
	return nil
}

func flag(v any, into *bool) error {
	b, ok := v.(bool)
	if !ok {
		return errors.New("true or false")
	}
	*into = b
	return nil
}

func text[T any](v any, into *T, parse func(string) (T, error), want string) error {
	s, ok := v.(string)
	if !ok {
		return errors.New(want)
	}
	got, err := parse(s)
	if err != nil {
		return errors.New(want)
	}
	*into = got
	return nil
}

func texts[T any](v any, into *[]T, parse func(string) (T, error)) error {
	list, ok := v.([]any)
	if !ok {
		return errors.New("a list")
	}
	for _, one := range list {
		var got T
		if err := text(one, &got, parse, "a list of names, or of 64 hexadecimal digits"); err != nil {
			return err
		}
		*into = append(*into, got)
	}
	return nil
}

func fingerprint(s string) (f Fingerprint, err error) {
	if s == "" {
		return nil, errors.New("empty")
	}
	err = f.UnmarshalText([]byte(s))
	return f, err
}
