package markfile

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/panlearn/panlearn/stream"
)

// Domains of the check sums. Version 1 had no instance.
const (
	domain1 = "panlearn claimed round v1\x00"
	domain2 = "panlearn claimed round v2\x00"
)

// A mark is the content of one file.
type mark struct {
	round    uint64
	named    bool // instance is known: not so in version 1
	instance [stream.InstanceSize]byte
}

// of says whether this process made the mark. Nobody is known to have made one of version 1.
func (m mark) of(instance [stream.InstanceSize]byte) bool { return m.named && m.instance == instance }

// encode is a line of the round in decimal, the instance in hexadecimal, and in hexadecimal the SHA-256 of domain, task hash
// and what stands before, parted by single spaces. Version 1 has no instance.
func (m mark) encode(task stream.Hash) string {
	domain, content := domain1, strconv.FormatUint(m.round, 10)
	if m.named {
		domain, content = domain2, content+" "+hex.EncodeToString(m.instance[:])
	}
	sum := sha256.Sum256([]byte(domain + string(task[:]) + content))
	return content + " " + hex.EncodeToString(sum[:]) + "\n"
}

// decode reads both versions, and nothing that encode would not write.
func decode(task stream.Hash, data string) (m mark, ok bool) {
	fields := strings.Split(data, " ")
	round, err := strconv.ParseUint(fields[0], 10, 64)
	if err != nil {
		return mark{}, false
	}
	m.round = round
	if len(fields) == 3 {
		id, err := hex.DecodeString(fields[1])
		if err != nil || len(id) != len(m.instance) {
			return mark{}, false
		}
		m.named = true
		copy(m.instance[:], id)
	}
	return m, m.encode(task) == data
}
