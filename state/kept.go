package state

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// maxRowBytes bounds the row of one round, in bytes.
const maxRowBytes = 1 << 16

// Kept is a store's history of one round, for people to read and for releasing a model again. Like the checkpoint it
// holds only functions of released batches. Passed to Commit, it replaces the round's earlier Kept; with an empty Row
// it deletes it. The caller bounds the number of rounds.
type Kept struct {
	Round uint64
	Row   []byte // public description of the round; opaque here
	Model []byte // the model after the round; empty: not kept
}

// validate refuses a Kept that no store holds after round last.
func (k Kept) validate(last uint64) error {
	switch {
	case k.Round < 1 || k.Round > last:
		return fmt.Errorf("kept round %d: want 1 to %d, the last one", k.Round, last)
	case len(k.Row) > maxRowBytes || len(k.Model) > MaxBlobBytes:
		return fmt.Errorf("kept round %d: %d bytes and a model of %d, want at most %d and %d", k.Round, len(k.Row),
			len(k.Model),
			maxRowBytes, MaxBlobBytes)
	case len(k.Row) == 0 && len(k.Model) > 0:
		return fmt.Errorf("kept round %d: a model without a row", k.Round)
	}
	return nil
}

const (
	keptVersion = 1
	keptHeader  = 4 + 2 + 8
	rowMagic    = "PLKR"
	modelMagic  = "PLKM"
)

// Encode returns the two values that a store writes; the second is nil if there is no model. Integers are big-endian:
//
//	offset  bytes
//	0       4   "PLKR" or "PLKM"
//	4       2   version (1)
//	6       8   round
//	14          the row or the model
//	end-32  32  SHA-256 of everything before
func (k Kept) Encode() (row, model []byte) {
	row = encodeKept(rowMagic, k.Round, k.Row)
	if len(k.Model) > 0 {
		model = encodeKept(modelMagic, k.Round, k.Model)
	}
	return row, model
}

// DecodeRow returns the row of a round from the first value of Encode.
func DecodeRow(round uint64, value []byte) ([]byte, error) { return decodeKept(rowMagic, round, value) }

// DecodeModel returns the model of a round from the second value of Encode.
func DecodeModel(round uint64, value []byte) ([]byte, error) {
	return decodeKept(modelMagic, round, value)
}

func encodeKept(magic string, round uint64, data []byte) []byte {
	out := append(make([]byte, 0, keptHeader+len(data)+sha256.Size), magic...)
	out = binary.BigEndian.AppendUint16(out, keptVersion)
	out = binary.BigEndian.AppendUint64(out, round)
	out = append(out, data...)
	sum := sha256.Sum256(out)
	return append(out, sum[:]...)
}

// decodeKept copies what it returns.
func decodeKept(magic string, round uint64, value []byte) ([]byte, error) {
	if len(value) < 6 || string(value[:4]) != magic {
		return nil, fmt.Errorf("kept round %d: %d bytes without the mark %q: damaged", round, len(value), magic)
	}
	if v := binary.BigEndian.Uint16(value[4:]); v != keptVersion {
		return nil, &VersionError{What: "kept round", Got: v, Want: keptVersion}
	}
	body := value[:max(len(value)-sha256.Size, 0)]
	if sum := sha256.Sum256(body); len(body) < keptHeader || string(sum[:]) != string(value[len(body):]) ||
		binary.BigEndian.Uint64(body[6:]) != round {
		return nil, fmt.Errorf("kept round %d: checksum does not match its %d bytes: damaged", round, len(value))
	}
	return append([]byte(nil), body[keptHeader:]...), nil
}
