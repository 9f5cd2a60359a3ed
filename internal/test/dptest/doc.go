// Package dptest has statistical assertions with a stated false-alarm rate. Each takes alpha, the probability with
// which it fails although the claim under test is true, and derives its threshold from that; tests of this module use
// alpha <= 1e-9 each, with fixed seeds that are printed, so that a failure can be repeated.
//
// It tests randomness, not privacy; claims about privacy are tested by package randomizer/audit.
package dptest

// Alpha is the false-alarm rate of one assertion in this module's tests.
const Alpha = 1e-9
