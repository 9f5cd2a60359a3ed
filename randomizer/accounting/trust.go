package accounting

import "fmt"

// Trust says who lays noise, and so which adversaries a release holds against.
type Trust int

const (
	// Shuffle: every report carries Bin(b, p) per coordinate; the stage adds nothing.
	Shuffle Trust = iota
	// Pan: reports carry no noise; the stage lays one floor before the first
	// and one after the last report.
	Pan
	// ShufflePan: noise in every report and both floors.
	ShufflePan
)

// String returns the name that task files and commands use.
func (t Trust) String() string {
	switch t {
	case Shuffle:
		return "shuffle"
	case Pan:
		return "pan"
	case ShufflePan:
		return "shuffle+pan"
	}
	return fmt.Sprintf("Trust(%d)", int(t))
}

// ParseTrust reads "shuffle", "pan" or "shuffle+pan".
func ParseTrust(s string) (Trust, error) {
	for _, t := range []Trust{Shuffle, Pan, ShufflePan} {
		if s == t.String() {
			return t, nil
		}
	}
	return 0, fmt.Errorf("trust %q: want shuffle, pan or shuffle+pan", clip(s))
}

// HasFloors reports whether the stage lays noise before and after the reports.
func (t Trust) HasFloors() bool { return t == Pan || t == ShufflePan }

// HasReportNoise reports whether every report carries noise of its own.
func (t Trust) HasReportNoise() bool { return t == Shuffle || t == ShufflePan }

// MarshalText implements encoding.TextMarshaler.
func (t Trust) MarshalText() ([]byte, error) {
	if err := t.validate(); err != nil {
		return nil, err
	}
	return []byte(t.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Trust) UnmarshalText(text []byte) error {
	v, err := ParseTrust(string(text))
	if err != nil {
		return err
	}
	*t = v
	return nil
}

func (t Trust) validate() error {
	if t < Shuffle || t > ShufflePan {
		return fmt.Errorf("trust %d: want shuffle, pan or shuffle+pan", int(t))
	}
	return nil
}

// clip keeps a hostile string out of an error message.
func clip(s string) string {
	if len(s) > 32 {
		return s[:32] + "..."
	}
	return s
}
