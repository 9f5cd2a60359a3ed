package manifest

import (
	"fmt"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/wire"
)

// Trust is the accountant's word for a trust model on the wire.
func Trust(t wire.Trust) (accounting.Trust, error) {
	switch t {
	case wire.Trust_TRUST_SHUFFLE:
		return accounting.Shuffle, nil
	case wire.Trust_TRUST_PAN:
		return accounting.Pan, nil
	case wire.Trust_TRUST_SHUFFLE_PAN:
		return accounting.ShufflePan, nil
	}
	return 0, fmt.Errorf("trust %d: unknown", int32(t))
}

// WireTrust is the inverse of Trust.
func WireTrust(t accounting.Trust) (wire.Trust, error) {
	switch t {
	case accounting.Shuffle:
		return wire.Trust_TRUST_SHUFFLE, nil
	case accounting.Pan:
		return wire.Trust_TRUST_PAN, nil
	case accounting.ShufflePan:
		return wire.Trust_TRUST_SHUFFLE_PAN, nil
	}
	return wire.Trust_TRUST_UNSPECIFIED, fmt.Errorf("trust %d: unknown", int(t))
}
