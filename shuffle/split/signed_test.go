package split

import "encoding/binary"

// signed returns bytes that stand for a signed share: tests of the core have no signatures.
func signed(s Share) []byte {
	out := binary.BigEndian.AppendUint64(s.X.Append(nil), s.Requests)
	out = binary.BigEndian.AppendUint64(out, s.Users)
	out = append(out, s.Chain[:]...)
	return appendBytes(out, s.Aggregate)
}

// readSigned returns the share that signed encoded.
func readSigned(b []byte) (Share, error) {
	r := reader{rest: b}
	out := Share{X: r.attempt(), Requests: r.uint64(), Users: r.uint64(), Chain: r.hash(), Aggregate: r.bytes()}
	return out, r.end("share")
}
