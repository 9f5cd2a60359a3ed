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
