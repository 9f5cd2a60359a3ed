package task

import (
	"crypto/ed25519"
	"encoding/hex"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// Operators declares the two parties between whom reports are shared under trust split, by the public keys that all
// participants pin. Planning and simulating need none.
type Operators struct {
	Leader string `json:"leader"` // public key of the stage in 64 hexadecimal digits: ingest keygen leader
	Helper string `json:"helper"` // public key of the second operator; differs from Leader
	// One declares that one party runs both, for trials: the pair then protects no more than one stage does.
	One bool `json:"one,omitempty"`
}

// Keys returns the public keys of both operators, or false if they are not valid keys.
func (o Operators) Keys() (leader, helper ed25519.PublicKey, ok bool) {
	key := func(text string) ed25519.PublicKey {
		b, err := hex.DecodeString(text)
		if err != nil || len(b) != ed25519.PublicKeySize || hex.EncodeToString(b) != text {
			return nil
		}
		return b
	}
	leader, helper = key(o.Leader), key(o.Helper)
	return leader, helper, leader != nil && helper != nil
}

// OneOperator reports whether a task of two operators declares that one party runs both.
func (p Privacy) OneOperator() bool { return p.Operators != nil && p.Operators.One }

// validateSplit refuses keys that do not apply to two operators, and operators under other trusts.
func (p Privacy) validateSplit() error {
	if p.Trust != accounting.Split {
		if p.Operators != nil {
			return refuse("privacy.operators", p.Operators.Leader, "nothing under trust %s: it has one operator", p.Trust)
		}
		return nil
	}
	switch {
	case p.Seal != "hpke":
		return refuse("privacy.seal", p.Seal, "hpke under trust split: the broker would read both shares of a report")
	case p.Sealing() != suiteHybrid:
		return refuse("privacy.suite", p.Sealing(), "%s or 3 under trust split, or nothing", suiteHybrid)
	case p.Operators == nil:
		return nil
	}
	leader, helper, ok := p.Operators.Keys()
	const digits = "a public key in 64 hexadecimal digits of a to f and 0 to 9"
	switch {
	case leader == nil:
		return refuse("privacy.operators.leader", p.Operators.Leader, digits)
	case !ok:
		return refuse("privacy.operators.helper", p.Operators.Helper, digits)
	case leader.Equal(helper):
		return refuse("privacy.operators.helper", p.Operators.Helper, "another key than the leader's: two operators")
	}
	return nil
}
