package task

import (
	"fmt"
	"time"
)

// A Duration is a time.Duration that is written as in "90s" or "1m30s".
type Duration time.Duration

// MarshalText writes d as time.Duration.String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what time.ParseDuration accepts.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("a duration such as 60s or 1m30s")
	}
	*d = Duration(v)
	return nil
}

// String writes d as time.Duration does.
func (d Duration) String() string { return time.Duration(d).String() }
