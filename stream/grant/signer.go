package grant

import (
	"crypto/rsa"
	"fmt"
	"math/big"

	"github.com/cloudflare/circl/blindsign/blindrsa"
)

// A Signer signs blinded messages under an issuer's private key. Its methods may be called from any goroutine.
type Signer struct {
	signer blindrsa.Signer
	spki   []byte
}

// NewSigner returns the signer of an RSA-2048 key.
func NewSigner(key *rsa.PrivateKey) (*Signer, error) {
	spki, err := marshalKey(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	return &Signer{signer: blindrsa.NewSigner(key), spki: spki}, nil
}

// Public returns the public key, keySize bytes.
func (s *Signer) Public() []byte { return s.spki }

// Sign returns the signature of a blinded message, SignatureSize bytes: always the same of one message. A message that
// is no number below the modulus is refused.
func (s *Signer) Sign(blinded []byte) ([]byte, error) {
	out, err := s.signer.BlindSign(blinded)
	if err != nil {
		return nil, fmt.Errorf("sign a blinded message: %w", err)
	}
	return out, nil
}

// Signs reports whether bytes are a blinded message that Sign takes.
func (s *Signer) Signs(blinded []byte) bool {
	key, err := ParseKey(s.spki)
	return err == nil && len(blinded) == SignatureSize && new(big.Int).SetBytes(blinded).Cmp(key.N) < 0
}
