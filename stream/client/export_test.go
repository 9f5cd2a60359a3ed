package client

import "math"

// TryCharge charges an account as a gateway does for an event whose outcome it learns at once.
func TryCharge(p Policy, charges []Charge, c Charge) ([]Charge, error) {
	if err := p.affordTotal(charges, c, c.At); err != nil {
		return nil, err
	}
	charges = charge(charges, c, 1, 1, math.MaxUint64)
	resolve(charges, c.Task, 1, c.At)
	return charges, nil
}

// MessageID is the message id of the message with that first report id, for an attempt.
func MessageID(report [16]byte, attempt uint64) [16]byte { return messageID(report, attempt) }
