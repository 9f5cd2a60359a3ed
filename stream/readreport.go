package stream

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream/wire"
)

// ReadReport decodes a report as Unmarshal does, and checks the same, in one pass over the bytes: the stage does it
// for every message. The report's fields refer to data, and its list of ids is made in the memory of the one before:
// so r is not to be kept, and not to be used after an error.
func ReadReport(data []byte, r *wire.Report) error {
	if readReport(data, r) {
		return nil
	}
	err := Unmarshal(data, r) // says what is wrong
	if err != nil {
		clear(r.Ciphertext) // a copy, which nobody else overwrites
	}
	return err
}

// readReport takes the one encoding that a report has, and nothing else.
func readReport(data []byte, r *wire.Report) bool {
	const (
		version      = 1<<3 | byte(protowire.VarintType)
		taskHash     = 2<<3 | byte(protowire.BytesType)
		id           = 3<<3 | byte(protowire.BytesType)
		encapsulated = 4<<3 | byte(protowire.BytesType)
		ciphertext   = 5<<3 | byte(protowire.BytesType)
	)
	ids := r.Ids[:0]
	proto.Reset(r)
	if len(data) < 4+HashSize || data[0] != version || data[1] != Version || data[2] != taskHash || data[3] != HashSize {
		return false
	}
	r.Version, r.TaskHash, data = Version, data[4:4+HashSize:4+HashSize], data[4+HashSize:]
	for len(ids) < MaxBundle && len(data) >= 2+ReportIDSize && data[0] == id && data[1] == ReportIDSize {
		// the memory is kept
		ids = append(ids, data[2:2+ReportIDSize:2+ReportIDSize])
		data = data[2+ReportIDSize:]
	}
	r.Ids = ids
	var fits bool
	if r.Encapsulated, data, fits = readField(data, encapsulated); !fits {
		return false
	}
	if r.Ciphertext, data, fits = readField(data, ciphertext); !fits {
		return false
	}
	return len(data) == 0 && len(ids) > 0
}

// readField takes a field of bytes off data: none where another field begins, but not one without bytes, which is
// never written.
func readField(data []byte, tag byte) (value, rest []byte, fits bool) {
	if len(data) == 0 || data[0] != tag {
		return nil, data, true
	}
	n, size := binary.Uvarint(data[1:])
	if size <= 0 || n == 0 || size != protowire.SizeVarint(n) || n > uint64(len(data)-1-size) {
		return nil, nil, false
	}
	data = data[1+size:]
	return data[:n:n], data[n:], true
}
