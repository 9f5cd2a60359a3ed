package markfile

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/panlearn/panlearn/stream"
)

// domain of the check sums.
const domain = "panlearn claimed round v1\x00"

// A mark is the content of one file: the round that was claimed, and who claimed it. The zero mark means that there is
// no file.
type mark struct {
	round    stream.Round
	instance [stream.InstanceSize]byte
}

// encode returns a line of the round in decimal, the instance in hexadecimal, and in hexadecimal the SHA-256 of
// domain, task hash and the fields before, parted by single spaces.
func (m mark) encode(task stream.Hash) string {
	content := strconv.FormatUint(uint64(m.round), 10) + " " + hex.EncodeToString(m.instance[:])
	sum := sha256.Sum256([]byte(domain + string(task[:]) + content))
	return content + " " + hex.EncodeToString(sum[:]) + "\n"
}

// decode reads nothing that encode would not write.
func decode(task stream.Hash, data string) (m mark, ok bool) {
	fields := strings.Split(data, " ")
	if len(fields) != 3 {
		return mark{}, false
	}
	round, err := strconv.ParseUint(fields[0], 10, 64)
	if err != nil {
		return mark{}, false
	}
	id, err := hex.DecodeString(fields[1])
	if err != nil || len(id) != len(m.instance) {
		return mark{}, false
	}
	m = mark{round: stream.Round(round), instance: [stream.InstanceSize]byte(id)}
	return m, m.encode(task) == data
}
