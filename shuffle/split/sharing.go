package split

import (
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/sha3"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cloudflare/circl/vdaf/prio3/sumvec"

	"github.com/panlearn/panlearn/shuffle"
)

// ID returns a report's id, Prio3's nonce: HKDF of the secret of the draw, the hash of the signed Open and the hash of
// the signed Join. Nobody knows it before both are published; it is the same if a device restarts in that attempt, and
// new in the next. draw is a secret of 32 bytes that belongs to the memoized counts alone.
func ID(draw [32]byte, open, join Hash) (id shuffle.ReportID) {
	info := "panlearn split id v1\x00" + string(open[:]) + string(join[:])
	key, err := hkdf.Key(sha256.New, draw[:], nil, info, len(id))
	if err != nil {
		panic(fmt.Sprintf("split: an id of %d bytes: %v", len(id), err)) // the length is ours
	}
	copy(id[:], key)
	return id
}

// Shares are one user's report, as three byte strings of the lengths that Sizes returns.
type Shares struct {
	Public []byte // in clear, authenticated by both ciphertexts
	Leader []byte // for the leader's ciphertext
	Helper []byte // for the helper's ciphertext
}

// Format hides the shares.
func (Shares) Format(f fmt.State, _ rune) { fmt.Fprint(f, "shares of a report") }

// MarshalText returns the placeholder of Format, for encoding/json.
func (s Shares) MarshalText() ([]byte, error) { return fmt.Append(nil, s), nil }

// A Sharing shards the counts of one attempt's reports. It is not for concurrent use.
type Sharing struct {
	params Params
	vec    *sumvec.SumVec
	open   Hash
	join   Hash
}

// NewSharing returns the Sharing of an attempt, named by the hashes of its signed Open and Join.
func NewSharing(p Params, open, join Hash) (*Sharing, error) {
	vec, err := p.newVec()
	if err != nil {
		return nil, err
	}
	return &Sharing{params: p, vec: vec, open: open, join: join}, nil
}

// Shard splits counts, each in 0..g, under a report id. fresh is 32 bytes from the operating system, drawn for this
// call. All randomness follows from fresh, the attempt, the id and the counts: a copied machine that draws the same
// bytes twice repeats itself in one attempt, and never shows one sharing under two verify keys. Keep the counts; store
// neither the shares nor fresh.
func (s *Sharing) Shard(counts []uint32, id shuffle.ReportID, fresh [32]byte) (Shares, error) {
	if len(counts) != s.params.Dim {
		return Shares{}, fmt.Errorf("shard: %d counts, want %d", len(counts), s.params.Dim)
	}
	measurement := make([]uint64, len(counts))
	defer clear(measurement)
	for j, c := range counts {
		if c>>s.params.Bits != 0 {
			return Shares{}, fmt.Errorf("shard: a count above %d", uint64(1)<<s.params.Bits-1)
		}
		measurement[j] = uint64(c)
	}
	nonce := sumvec.Nonce(id)
	coins := s.coins(counts, id, fresh)
	defer clear(coins)
	public, input, err := s.vec.Shard(measurement, &nonce, coins)
	if err != nil {
		return Shares{}, errors.New("shard: Prio3 refuses the counts") // its error could say which
	}
	out := Shares{Public: public}
	if out.Leader, err = input[leader].MarshalBinary(); err == nil {
		out.Helper, err = input[helper].MarshalBinary()
	}
	if err != nil {
		return Shares{}, errors.New("shard: Prio3 does not encode its shares")
	}
	return out, nil
}

// coins returns the randomness of one sharing, cSHAKE256 over all that it may depend on.
func (s *Sharing) coins(counts []uint32, id shuffle.ReportID, fresh [32]byte) []byte {
	xof := sha3.NewCSHAKE256(nil, []byte("panlearn split shard v1"))
	for _, part := range [][]byte{fresh[:], s.open[:], s.join[:], id[:]} {
		xof.Write(part) // each of fixed length
	}
	for _, c := range counts {
		xof.Write(binary.BigEndian.AppendUint32(nil, c))
	}
	p := s.vec.Params()
	out := make([]byte, p.RandSize())
	xof.Read(out)
	return out
}
