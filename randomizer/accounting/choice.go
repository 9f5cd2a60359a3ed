package accounting

import "fmt"

// CoinPolicy is the planner's choice of the success probability p.
type CoinPolicy int

const (
	// CoinFair takes p = 1/2 where that costs at most 3% in mean squared error
	// against the free choice, else the free choice. Fair noise is the popcount
	// of random bits.
	CoinFair CoinPolicy = iota
	// CoinAny takes the smallest p on the grid 2^-24 that meets the target.
	CoinAny
)

// String returns "fair" or "any".
func (c CoinPolicy) String() string {
	switch c {
	case CoinFair:
		return "fair"
	case CoinAny:
		return "any"
	}
	return fmt.Sprintf("CoinPolicy(%d)", int(c))
}

// ParseCoin reads "fair" or "any".
func ParseCoin(s string) (CoinPolicy, error) {
	for _, c := range []CoinPolicy{CoinFair, CoinAny} {
		if s == c.String() {
			return c, nil
		}
	}
	return 0, fmt.Errorf("coin %q: want fair or any", clip(s))
}

// MarshalText implements encoding.TextMarshaler.
func (c CoinPolicy) MarshalText() ([]byte, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return []byte(c.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *CoinPolicy) UnmarshalText(text []byte) error {
	v, err := ParseCoin(string(text))
	if err != nil {
		return err
	}
	*c = v
	return nil
}

func (c CoinPolicy) validate() error {
	if c != CoinFair && c != CoinAny {
		return fmt.Errorf("coin %d: want fair or any", int(c))
	}
	return nil
}

// Constants says where a plan's parameters come from.
type Constants int

const (
	// Numeric searches the smallest noise that Theorem A proves enough.
	Numeric Constants = iota
	// Paper takes the closed forms of Cheu, Joseph, Mao, Peng, "Shuffle Private
	// Stochastic Convex Optimization", ICLR 2022, Theorem 3.2.
	Paper
)

// String returns "numeric" or "paper".
func (c Constants) String() string {
	switch c {
	case Numeric:
		return "numeric"
	case Paper:
		return "paper"
	}
	return fmt.Sprintf("Constants(%d)", int(c))
}

// ParseConstants reads the name of a profile, "numeric" or "paper".
func ParseConstants(s string) (Constants, error) {
	for _, c := range []Constants{Numeric, Paper} {
		if s == c.String() {
			return c, nil
		}
	}
	return 0, fmt.Errorf("profile %q: want numeric or paper", clip(s))
}

// MarshalText implements encoding.TextMarshaler.
func (c Constants) MarshalText() ([]byte, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return []byte(c.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Constants) UnmarshalText(text []byte) error {
	v, err := ParseConstants(string(text))
	if err != nil {
		return err
	}
	*c = v
	return nil
}

func (c Constants) validate() error {
	if c != Numeric && c != Paper {
		return fmt.Errorf("profile %d: want numeric or paper", int(c))
	}
	return nil
}
