package split

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/panlearn/panlearn/randomizer"
)

// An Entropy holds the secrets from which an operator draws one floor. It is used once, for the end of one attempt.
type Entropy struct {
	// Fresh holds 32 bytes that the operating system gave for this floor.
	Fresh [32]byte
	// Secret is 32 bytes that follow from the operator's key file and are shown to nobody. With it a floor stays
	// unknown, and differs between attempts, even where a copied machine draws the same Fresh again.
	Secret [32]byte
}

// Format hides the entropy.
func (Entropy) Format(f fmt.State, _ rune) { fmt.Fprint(f, "entropy of a floor") }

// MarshalText returns the placeholder of Format, for encoding/json.
func (e Entropy) MarshalText() ([]byte, error) { return fmt.Append(nil, e), nil }

// floorSeed returns the seed of the floor that a party lays at the end of an attempt, after so many requests and users.
func floorSeed(e Entropy, role byte, f Finish) (seed [32]byte) {
	secret := append(append([]byte{}, e.Fresh[:]...), e.Secret[:]...)
	defer clear(secret)
	info := append([]byte("panlearn split floor v1\x00"), role)
	key, err := hkdf.Key(sha256.New, secret, nil, string(Append(info, f)), len(seed))
	if err != nil {
		panic(fmt.Sprintf("split: a seed of %d bytes: %v", len(seed), err)) // the length is ours
	}
	copy(seed[:], key)
	clear(key)
	return seed
}

// floor returns one draw of noise for each coordinate, encoded as an output share of Prio3: 16 bytes each,
// little-endian, the upper half zero.
func floor(noise *randomizer.Binomial, dim int, seed [32]byte) []byte {
	src := rand.NewChaCha8(seed)
	defer src.Seed([32]byte{})
	out := make([]byte, 0, dim*elementBytes)
	for range dim {
		out = binary.LittleEndian.AppendUint64(out, noise.Sample(src))
		out = binary.LittleEndian.AppendUint64(out, 0)
	}
	return out
}
