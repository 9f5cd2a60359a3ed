package state

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

const (
	checkpointVersion = 1
	checkpointMagic   = "PLCK"
	checkpointHeader  = 4 + 2 + 32 + 8 + 32 + 8
)

// A VersionError reports bytes of a format version other than the one that this build reads and writes.
type VersionError struct {
	What      string // "state folder", "checkpoint", "ledger" or "ledger entry"
	Got, Want uint16
	By        string // build that wrote the bytes; empty if unknown
}

func (e *VersionError) Error() string {
	which := "the build that wrote it"
	if e.By != "" {
		which = "build " + e.By + ", which wrote it"
	}
	return fmt.Sprintf(
		"%s was written by another version of panlearn: it has format version %d, this build reads version %d: use %s; "+
			"docs/how-to/upgrades.md has the way back", e.What, e.Got, e.Want, which)
}

// AppendBinary appends the canonical encoding of c. Integers are big-endian:
//
//	offset  bytes
//	0       4   "PLCK"
//	4       2   version (1)
//	6       32  task hash
//	38      8   round
//	46      32  batch hash
//	78      8   batch sequence
//	86          the ledger's sums: [Ledger] has head, task hash and sums, 137 bytes, and the open reservation, if there is one
//	            algorithm, task, next round, end, last batch: each 8 bytes of length, then the bytes
//	end-32  32  SHA-256 of everything before
//
// It fails if c is not valid.
func (c Checkpoint) AppendBinary(b []byte) ([]byte, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	start := len(b)
	b = append(b, checkpointMagic...)
	b = binary.BigEndian.AppendUint16(b, checkpointVersion)
	b = append(b, c.Cursor.TaskHash[:]...)
	b = binary.BigEndian.AppendUint64(b, c.Cursor.Round)
	b = append(b, c.Cursor.BatchHash[:]...)
	b = binary.BigEndian.AppendUint64(b, c.Cursor.BatchSequence)
	b = c.Ledger.appendBody(b)
	for _, f := range c.blobs() {
		b = binary.BigEndian.AppendUint64(b, uint64(len(*f.bytes)))
		b = append(b, *f.bytes...)
	}
	sum := sha256.Sum256(b[start:])
	return append(b, sum[:]...), nil
}

// MarshalBinary returns the canonical encoding of c, as AppendBinary describes it.
func (c Checkpoint) MarshalBinary() ([]byte, error) {
	n := checkpointHeader + ledgerSums + EntryBytes + sha256.Size
	for _, f := range c.blobs() {
		n += 8 + len(*f.bytes)
	}
	return c.AppendBinary(make([]byte, 0, n))
}

// UnmarshalBinary reads the encoding of AppendBinary and copies what it keeps. Bytes that it accepts encode back to
// themselves; everything else is an error, a *[VersionError] for another version, and leaves c as it was.
func (c *Checkpoint) UnmarshalBinary(data []byte) error {
	if len(data) < 6 || string(data[:4]) != checkpointMagic {
		return fmt.Errorf("checkpoint: %d bytes without the mark %q: not a checkpoint or damaged", len(data), checkpointMagic)
	}
	// The version is read before the checksum: another version may end differently.
	if v := binary.BigEndian.Uint16(data[4:]); v != checkpointVersion {
		return &VersionError{What: "checkpoint", Got: v, Want: checkpointVersion}
	}
	if len(data) < 6+sha256.Size {
		return fmt.Errorf("checkpoint: truncated to %d bytes", len(data))
	}
	body := data[:len(data)-sha256.Size]
	if sum := sha256.Sum256(body); string(sum[:]) != string(data[len(body):]) {
		return fmt.Errorf("checkpoint: checksum does not match its %d bytes: damaged, restore a backup", len(data))
	}
	got, err := readCheckpoint(body)
	if err == nil {
		err = got.validate()
	}
	if err != nil {
		return err
	}
	*c = got
	return nil
}

// readCheckpoint reads the fields of a body whose version and checksum are right.
func readCheckpoint(body []byte) (Checkpoint, error) {
	if len(body) < checkpointHeader {
		return Checkpoint{}, fmt.Errorf("checkpoint: truncated to %d bytes", len(body))
	}
	var got Checkpoint
	got.Cursor.TaskHash = Hash(body[6:38])
	got.Cursor.Round = binary.BigEndian.Uint64(body[38:])
	got.Cursor.BatchHash = Hash(body[46:78])
	got.Cursor.BatchSequence = binary.BigEndian.Uint64(body[78:])
	ledger, rest, err := readLedger(body[checkpointHeader:])
	if err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint: %w", err)
	}
	got.Ledger = ledger
	for _, f := range got.blobs() {
		if len(rest) < 8 {
			return Checkpoint{}, fmt.Errorf("checkpoint: ends inside the length of %s", f.name)
		}
		n := binary.BigEndian.Uint64(rest)
		rest = rest[8:]
		if n > uint64(len(rest)) {
			return Checkpoint{}, fmt.Errorf("checkpoint: %s claims %d bytes, %d are left", f.name, n, len(rest))
		}
		*f.bytes = append([]byte(nil), rest[:n]...)
		rest = rest[n:]
	}
	if len(rest) > 0 {
		return Checkpoint{}, fmt.Errorf("checkpoint: %d bytes after the last field", len(rest))
	}
	return got, nil
}
