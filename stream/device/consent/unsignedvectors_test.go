package consent_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/vectors"
	"github.com/panlearn/panlearn/stream"
)

// sixteen is an instance, or the id of a request.
func sixteen(b byte) []byte { return bytes.Repeat([]byte{b}, 16) }

func leases(t *testing.T) (out []lease) {
	good := stream.Lease{Instance: [16]byte(sixteen(5)), TTL: 10 * time.Second, Newest: 258}.Record()
	over := stream.Lease{Instance: [16]byte(sixteen(6))}.Record()
	wrong := bytes.Clone(good)
	wrong[0] = 2
	for _, c := range []struct {
		number string
		record []byte
	}{{"", good}, {"", over}, {"L1", good[:28]}, {"L1", append(bytes.Clone(good), 0)}, {"L1", wrong}, {"L1", nil}} {
		v := lease{Record: c.record, Refused: c.number}
		l, err := stream.ParseLease(c.record)
		if c.number != "" {
			vectors.Refused(t, "a lease", c.number, err)
		} else {
			must(t, err)
			v.Instance, v.TTL, v.Newest = l.Instance[:], l.TTL.Milliseconds(), uint64(l.Newest)
		}
		out = append(out, v)
	}
	return out
}

func requests(t *testing.T) (out []request) {
	one := stream.PlaceRequest{ID: [16]byte(sixteen(3)), Users: 1}.Record()
	many := stream.PlaceRequest{ID: [16]byte(sixteen(4)), Users: 300, Charged: true}.Record()
	change := func(at int, b byte) []byte {
		r := bytes.Clone(one)
		r[at] = b
		return r
	}
	for _, c := range []struct {
		number string
		record []byte
	}{{"", one}, {"", many}, {"L2", change(0, 2)}, {"L2", change(21, 2)}, {"L2", change(20, 0)}, {"L2", one[:21]},
		{"L2", append(bytes.Clone(one), 0)}} {
		v := request{Record: c.record, Refused: c.number}
		r, err := stream.ParsePlaceRequest(c.record)
		if c.number != "" {
			vectors.Refused(t, "a request for places", c.number, err)
		} else {
			must(t, err)
			v.ID, v.Users, v.Charged = r.ID[:], r.Users, r.Charged
		}
		out = append(out, v)
	}
	return out
}

func answers(t *testing.T) (out []answer) {
	granted := stream.PlaceAnswer{ID: [16]byte(sixteen(3)), Verdict: stream.PlaceGranted, Users: 2,
		Time: 3 * time.Second}.Record()
	wait := stream.PlaceAnswer{ID: [16]byte(sixteen(3)), Verdict: stream.PlaceWait, Time: 1500 * time.Millisecond}.Record()
	over := stream.PlaceAnswer{ID: [16]byte(sixteen(3)), Verdict: stream.PlaceOver}.Record()
	change := func(r []byte, at int, b byte) []byte {
		r = bytes.Clone(r)
		r[at] = b
		return r
	}
	for _, c := range []struct {
		number string
		record []byte
	}{{"", granted}, {"", wait}, {"", over}, {"L3", change(granted, 0, 2)}, {"L3", change(granted, 17, 0)},
		{"L3", change(over, 17, 4)}, {"L3", change(granted, 21, 0)}, {"L3", change(wait, 21, 1)}, {"L3", over[:25]}} {
		v := answer{Record: c.record, Refused: c.number}
		a, err := stream.ParsePlaceAnswer(c.record)
		if c.number != "" {
			vectors.Refused(t, "an answer about places", c.number, err)
		} else {
			must(t, err)
			v.ID, v.Verdict, v.Users, v.Time = a.ID[:], uint8(a.Verdict), a.Users, a.Time.Milliseconds()
		}
		out = append(out, v)
	}
	return out
}

func subjects(t *testing.T) (out []subject) {
	for _, c := range []struct{ number, subject string }{
		{"", "panlearn.churn.task"}, {"", "panlearn.churn.round.12"}, {"", "panlearn.churn.open.12.3"},
		{"", "panlearn.churn.claim.12"}, {"", "panlearn.churn.close.12.3"}, {"", "panlearn.churn.end"},
		{"", "panlearn.a-b_0.lease"}, {"", "panlearn.churn.report.18446744073709551615.1"},
		{"", "panlearn.churn.place.1.1"},
		{"L4", "other.churn.task"}, {"L4", "panlearn.churn"}, {"L4", "panlearn.Churn.task"},
		{"L4", "panlearn.churn.round"}, {"L4", "panlearn.churn.round.0"}, {"L4", "panlearn.churn.round.01"},
		{"L4", "panlearn.churn.round.+1"}, {"L4", "panlearn.churn.round.18446744073709551616"},
		{"L4", "panlearn.churn.open.1"}, {"L4", "panlearn.churn.open.1.2.3"}, {"L4", "panlearn.churn.wake.round.1"},
		{"L4", "panlearn.churn.round.*"},
	} {
		v := subject{Subject: c.subject, Refused: c.number}
		a, err := stream.ParseSubject(c.subject)
		if c.number != "" {
			vectors.Refused(t, c.subject, c.number, err)
		} else {
			must(t, err)
			v.Task, v.Verb, v.Round, v.Attempt = string(a.Task), a.Verb, uint64(a.Round), uint64(a.Attempt)
		}
		out = append(out, v)
	}
	return out
}
