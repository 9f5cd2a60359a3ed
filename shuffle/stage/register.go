package stage

import (
	"bytes"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream"
)

// A register is one subject of the Leases stream as its writer sees it. What it holds may be overwritten by its writer
// alone; that another one writes is found out by the sequence.
type register struct {
	subject  string
	known    bool // sequence is what stands, as far as we know
	sequence uint64
}

// next is the step that brings data to stand: a write, after a read where it is not known what stands.
func (r *register) next(data []byte) step {
	if !r.known {
		return step{verb: get, subject: r.subject}
	}
	return step{verb: swap, subject: r.subject, data: data, expects: r.sequence}
}

// took is told what came of next(data), and says whether data stands. After a write whose answer was lost the next
// one conflicts, and the read after that finds our own bytes.
func (r *register) took(s step, res result, data []byte) (stands bool) {
	switch {
	case s.verb == swap && res.stands != 0:
		r.sequence = res.stands
		return true
	case s.verb == swap:
		r.known = false
	case res.message == nil:
		r.known, r.sequence = true, 0
	default:
		r.known, r.sequence = true, res.message.Sequence
		return bytes.Equal(res.message.Data, data)
	}
	return false
}

// beat is how often owner and workers of an attempt look at each other.
func (f *facts) beat() time.Duration { return max(time.Millisecond, min(f.Poll, f.LeaseTTL)/16) }

// hear decodes what another process of this stage wrote on a subject of Leases: nil for nothing, and for what does not
// verify, which counts as nothing said.
func hear[M interface {
	proto.Message
	GetTaskHash() []byte
}](f *facts, m *stream.Message, into M) (heard M, ok bool) {
	if m == nil || len(m.Data) == 0 {
		return into, false
	}
	if _, err := f.read(m, f.Identity.Public(), into); err != nil {
		f.Logger.Debug("passed over what no process of this stage wrote", "error", err)
		return into, false
	}
	return into, true
}
