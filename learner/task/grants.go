package task

import "encoding/base64"

// grantsPass is the only word of Spec.Grants; none means the empty string.
const (
	grantsPass = "pass"
	grantsNone = "none"
)

// IssuerKeySize is the length of an issuer's public key, in bytes.
const IssuerKeySize = 342

// HasGrants reports whether each report must carry a token of an issuer, which gives each person one.
func (s *Spec) HasGrants() bool { return s.Grants == grantsPass }

// Issuer returns the declared issuer's public key, IssuerKeySize bytes; nil if none is declared.
func (s *Spec) Issuer() []byte {
	key, err := base64.StdEncoding.Strict().DecodeString(s.IssuerKey)
	if err != nil || len(key) != IssuerKeySize {
		return nil
	}
	return key
}

// IssuerKeyText returns the public key of an issuer as a task file declares it.
func IssuerKeyText(key []byte) string { return base64.StdEncoding.EncodeToString(key) }

// validateGrants refuses an issuer without grants, and grants in tasks of silos, which are few and known.
func (s *Spec) validateGrants() error {
	if err := oneOf("grants", s.Grants, "", grantsPass); err != nil {
		return refuse("grants", s.Grants, "none or pass")
	}
	switch {
	case !s.HasGrants() && s.IssuerKey != "":
		return refuse("issuer_key", s.IssuerKey, "nothing without grants: pass")
	case s.HasGrants() && s.Silo != nil:
		return refuse("grants", s.Grants, "nothing with silo: organisations are known, and say so themselves")
	case s.HasGrants() && s.IssuerKey != "" && s.Issuer() == nil:
		return refuse("issuer_key", s.IssuerKey, "the public key that ingest keygen issuer prints, %d bytes in base64",
			IssuerKeySize)
	}
	return nil
}
