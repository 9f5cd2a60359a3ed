package state

import (
	"bytes"
	"crypto/sha256"
)

// resummed returns data with the checksum that its other bytes have.
func resummed(data []byte) []byte {
	data = bytes.Clone(data)
	if len(data) < sha256.Size {
		return data
	}
	body := data[:len(data)-sha256.Size]
	sum := sha256.Sum256(body)
	return append(body, sum[:]...)
}

// rehashed returns an encoded entry with the hash that its other bytes have.
func rehashed(data []byte) []byte {
	if len(data) != EntryBytes {
		return data
	}
	sum := sha256.Sum256(append([]byte(entryDomain), data[:entryBody]...))
	return append(bytes.Clone(data[:entryBody]), sum[:]...)
}
