package curator

// spread is the guess of Spread that a plan uses.
func (p Public) spread() float64 {
	if p.Spread == 0 {
		return 1
	}
	return p.Spread
}

// failure is the Failure that a plan uses.
func (p Public) failure() float64 {
	if p.Failure == 0 {
		return 1e-3
	}
	return p.Failure
}
