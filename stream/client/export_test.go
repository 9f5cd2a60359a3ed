package client

import "math"

// TryCharge charges an account as a gateway does.
func TryCharge(p Policy, charges []Charge, c Charge) ([]Charge, error) {
	if err := p.affordTotal(charges, c, c.At); err != nil {
		return nil, err
	}
	return charge(charges, c, 1, math.MaxUint64), nil
}
