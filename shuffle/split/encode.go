package split

import "encoding/binary"

// Messages are encoded field by field, in the order of the type: numbers big-endian, hashes as they are, byte strings
// and lists behind a uint32 of their length. One value has one encoding.

func appendBytes(out, b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(out, uint32(len(b))), b...)
}

// Append appends the attempt's encoding to out.
func (x Attempt) Append(out []byte) []byte {
	out = append(out, x.Task[:]...)
	out = binary.BigEndian.AppendUint64(out, x.Round)
	out = binary.BigEndian.AppendUint64(out, x.Number)
	out = append(out, x.Open[:]...)
	return append(out, x.Join[:]...)
}

// appendBundles appends a list of bundles: of each its users, as id, public share and prep share, and its ciphertext.
func appendBundles(out []byte, bundles []Bundle) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(len(bundles)))
	for _, b := range bundles {
		out = binary.BigEndian.AppendUint32(out, uint32(len(b.Users)))
		for _, u := range b.Users {
			out = append(out, u.ID[:]...)
			out = appendBytes(out, u.Public)
			out = appendBytes(out, u.Prep)
		}
		out = appendBytes(out, b.Sealed)
	}
	return out
}

// Append appends the request's encoding to out.
func (r Request) Append(out []byte) []byte {
	out = r.X.Append(out)
	out = binary.BigEndian.AppendUint64(out, r.N)
	out = binary.BigEndian.AppendUint64(out, r.Base)
	return appendBundles(out, r.Bundles)
}

// Append appends the reply's encoding to out. Messages has no length: it is the number of accepted users.
func (r Reply) Append(out []byte) []byte {
	out = r.X.Append(out)
	out = binary.BigEndian.AppendUint64(out, r.N)
	out = append(out, r.Request[:]...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(r.Outcomes)))
	for _, o := range r.Outcomes {
		out = append(out, byte(o))
	}
	for _, m := range r.Messages {
		out = append(out, m[:]...)
	}
	return append(out, r.Chain[:]...)
}

// Append appends the ping's encoding to out.
func (p Ping) Append(out []byte) []byte {
	return binary.BigEndian.AppendUint64(p.X.Append(out), p.Highest)
}

// Append appends the pong's encoding to out.
func (p Pong) Append(out []byte) []byte {
	out = append(p.X.Append(out), p.Instance[:]...)
	return binary.BigEndian.AppendUint64(out, p.Show)
}

// Append appends the finish's encoding to out.
func (f Finish) Append(out []byte) []byte {
	out = f.X.Append(out)
	out = binary.BigEndian.AppendUint64(out, f.Requests)
	out = binary.BigEndian.AppendUint64(out, f.Users)
	return append(out, f.Chain[:]...)
}

// Append appends the gone's encoding to out.
func (g Gone) Append(out []byte) []byte {
	out = append(g.X.Append(out), g.Instance[:]...)
	return binary.BigEndian.AppendUint64(out, g.Marked)
}

// Append appends the differs' encoding to out.
func (d Differs) Append(out []byte) []byte { return append(d.X.Append(out), d.Instance[:]...) }
