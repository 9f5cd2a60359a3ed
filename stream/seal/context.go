package seal

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/stream"
)

// infoPrefix separates a report's HPKE context from every other use of the same key.
const infoPrefix = "panlearn/v1/report\x00"

// A Context binds a sealed report: it opens under exactly this context and no other.
type Context struct {
	ManifestHash stream.Hash       // of the canonical Round body
	Attempt      uint64            // from 1
	StageKey     ed25519.PublicKey // the stage's pinned identity, 32 bytes
	Public       []byte            // the attempt's HPKE key, as in Open; empty for SUITE_NONE
}

// Info returns the HPKE info:
//
//	"panlearn/v1/report" 0x00
//	manifest hash             32 bytes
//	attempt                    8 bytes, big endian
//	stage key                 32 bytes
//	the attempt's public key  the rest
func (c Context) Info() []byte {
	info := make([]byte, 0, len(infoPrefix)+stream.HashSize+8+len(c.StageKey)+len(c.Public))
	info = append(info, infoPrefix...)
	info = append(info, c.ManifestHash[:]...)
	info = binary.BigEndian.AppendUint64(info, c.Attempt)
	info = append(info, c.StageKey...)
	return append(info, c.Public...)
}

// validate keeps Info's layout unambiguous.
func (c Context) validate() error {
	if len(c.StageKey) != stream.KeySize {
		return fmt.Errorf("stage key has %d bytes: want %d", len(c.StageKey), stream.KeySize)
	}
	if c.Attempt == 0 {
		return errors.New("attempt 0: want at least 1")
	}
	return nil
}

// associated returns the HPKE associated data: of a single report its id (16 bytes), of a bundle the number of users
// (4 bytes, big endian) and their ids in order. The lengths differ modulo 16, so neither can pass for the other.
func associated(ids [][]byte) []byte {
	if len(ids) == 1 {
		return ids[0]
	}
	aad := make([]byte, 0, 4+len(ids)*stream.ReportIDSize)
	aad = binary.BigEndian.AppendUint32(aad, uint32(len(ids)))
	for _, id := range ids {
		aad = append(aad, id...)
	}
	return aad
}
