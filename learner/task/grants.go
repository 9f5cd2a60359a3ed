package task

import "encoding/base64"

// Grants is pass where each report has a token of an issuer, who knows the people and gives each of them one. A file
// may have none, the default, which is the empty string.
type Grants string

// The words of Grants.
const (
	grantsPass Grants = "pass"
	grantsNone Grants = "none"
)

// Needed reports whether each report must carry a token.
func (g Grants) Needed() bool { return g == grantsPass }

// An IssuerKey is the public key of an issuer, for one task alone, in base64: ingest keygen issuer prints it.
type IssuerKey string

// IssuerKeySize is the length of an issuer's public key, in bytes.
const IssuerKeySize = 342

// IssuerKeyText returns the public key of an issuer as a task file declares it.
func IssuerKeyText(key []byte) string { return base64.StdEncoding.EncodeToString(key) }

// Bytes returns the key, IssuerKeySize bytes; nil if none is declared.
func (k IssuerKey) Bytes() []byte {
	key, err := base64.StdEncoding.Strict().DecodeString(string(k))
	if err != nil || len(key) != IssuerKeySize {
		return nil
	}
	return key
}

// validate refuses an issuer without grants, and grants in tasks of silos, which are few and known.
func (g Grants) validate(issuer IssuerKey, silo *Silo) error {
	if err := oneOf("grants", g, "", grantsPass); err != nil {
		return refuse("grants", g, "none or pass")
	}
	switch {
	case !g.Needed() && issuer != "":
		return refuse("issuer_key", issuer, "nothing without grants: pass")
	case g.Needed() && silo != nil:
		return refuse("grants", g, "nothing with silo: organisations are known, and say so themselves")
	case g.Needed() && issuer != "" && issuer.Bytes() == nil:
		return refuse("issuer_key", issuer, "the public key that ingest keygen issuer prints, %d bytes in base64",
			IssuerKeySize)
	}
	return nil
}
