package task

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// An HonestFraction is the share of the users of a round whose noise is relied upon, in (0, 1]. A file may have 0.90 or
// 9/10; in the canonical form it is text, as accounting.Fraction writes it.
type HonestFraction struct{ accounting.Fraction }

// UnmarshalText reads a decimal or a quotient, as accounting.ParseFraction does. Its error names the accepted forms.
func (f *HonestFraction) UnmarshalText(text []byte) error {
	v, err := accounting.ParseFraction(string(text))
	if err != nil {
		return errors.New("a decimal or a/b in (0, 1] of at most 18 digits, such as 0.9")
	}
	f.Fraction = v
	return nil
}

// MarshalJSON writes the exact text. It returns an error for the zero value.
func (f HonestFraction) MarshalJSON() ([]byte, error) {
	text, err := f.MarshalText()
	if err != nil {
		return nil, err
	}
	return json.Marshal(string(text))
}

// UnmarshalJSON reads what MarshalJSON writes, and refuses other spellings of the same fraction.
func (f *HonestFraction) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	if err := f.UnmarshalText([]byte(text)); err != nil {
		return err
	}
	if f.String() != text {
		return fmt.Errorf("honest fraction %q: want %s, which is the same in its plain form", text, f)
	}
	return nil
}
