package task

import "fmt"

// The words of privacy.suite. The default is left out of the canonical form.
const (
	suiteX25519 = "x25519"
	suiteHybrid = "mlkem768x25519"
)

// oneSuite returns one spelling of a suite: its word, and "" for the default.
func oneSuite(s string) string {
	switch s {
	case "2", suiteX25519:
		return ""
	case "3":
		return suiteHybrid
	}
	return s
}

// Sealing returns the word of the suite that seals a task's reports: none, x25519 or mlkem768x25519.
func (p Privacy) Sealing() string {
	switch {
	case p.Seal == "none":
		return "none"
	case p.Suite == "":
		return suiteX25519
	}
	return p.Suite
}

// validateSuite refuses an unknown suite, and a suite for reports that are not sealed.
func (p Privacy) validateSuite() error {
	switch {
	case p.Suite != "" && p.Suite != suiteHybrid:
		return refuse("privacy.suite", fmt.Sprintf("%q", p.Suite), "%s or 2, or %s or 3", suiteX25519, suiteHybrid)
	case p.Suite != "" && p.Seal == "none":
		return refuse("privacy.suite", p.Suite, "none beside privacy.seal none: these reports are not encrypted")
	}
	return nil
}
