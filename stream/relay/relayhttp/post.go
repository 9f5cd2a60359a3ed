package relayhttp

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/panlearn/panlearn/stream"
)

const version = 1

// A Report is the body of a POST of one message of reports.
//
//	version   1 byte, 1
//	round     8 bytes
//	attempt   8 bytes
//	id       16 bytes, the message id that all its retries keep
//	data     the rest: the sealed message
type Report struct {
	Round   stream.Round
	Attempt stream.Attempt
	ID      [16]byte
	Data    []byte
}

// ReportHead is the number of bytes of a Report before its data.
const ReportHead = 1 + 8 + 8 + 16

// A Place is the body of a POST of a request for places. The stage gets the request's bytes unchanged.
//
//	version   1 byte, 1
//	round     8 bytes
//	attempt   8 bytes
//	request   the rest
type Place struct {
	Round   stream.Round
	Attempt stream.Attempt
	Request []byte
}

// PlaceHead is the number of bytes of a Place before the request.
const PlaceHead = 1 + 8 + 8

// MaxPlace is the length of the longest request for places, in bytes, and of the longest answer.
const MaxPlace = 2048

// An Answer has what the broker said of a report: it is the body of the 200 to its POST. Any other response to a POST, of
// a relay or of somebody between, is no answer: the report may be stored.
//
//	version    1 byte, 1
//	id        16 bytes, of the report
//	status     1 byte: 1 stored, 2 duplicate, 3 refused
//	sequence   8 bytes, of stored and duplicate; else 0
//	reason     1 byte, of stream.Reason, of refused; else 0
type Answer struct {
	ID       [16]byte
	Status   stream.AckStatus
	Sequence uint64
	Reason   stream.Reason
}

// answerSize is the number of bytes of an Answer.
const answerSize = 1 + 16 + 1 + 8 + 1

var (
	errReport = errors.New("the body is no report: want 1, round, attempt, id and the sealed message")
	errPlace  = errors.New("the body is no request for places: want 1, round, attempt and the request")
	errAnswer = errors.New("the body is no answer that this program reads")
)

func head(size int, round stream.Round, attempt stream.Attempt) []byte {
	b := append(make([]byte, 0, size), version)
	b = binary.BigEndian.AppendUint64(b, uint64(round))
	return binary.BigEndian.AppendUint64(b, uint64(attempt))
}

// Bytes encodes a report.
func (r Report) Bytes() []byte {
	b := head(ReportHead+len(r.Data), r.Round, r.Attempt)
	return append(append(b, r.ID[:]...), r.Data...)
}

// ParseReport decodes what Bytes wrote, and nothing else. Data refer to the given bytes.
func ParseReport(b []byte) (Report, error) {
	if len(b) <= ReportHead || b[0] != version {
		return Report{}, errReport
	}
	r := Report{Round: stream.Round(binary.BigEndian.Uint64(b[1:])), Attempt: stream.Attempt(binary.BigEndian.Uint64(b[9:])),
		ID: [16]byte(b[17:ReportHead]), Data: b[ReportHead:]}
	if r.Round == 0 || r.Attempt == 0 {
		return Report{}, errReport
	}
	return r, nil
}

// Bytes encodes a request for places.
func (p Place) Bytes() []byte {
	return append(head(PlaceHead+len(p.Request), p.Round, p.Attempt), p.Request...)
}

// ParsePlace decodes what Bytes wrote, and nothing else.
func ParsePlace(b []byte) (Place, error) {
	if len(b) <= PlaceHead || len(b) > PlaceHead+MaxPlace || b[0] != version {
		return Place{}, errPlace
	}
	p := Place{Round: stream.Round(binary.BigEndian.Uint64(b[1:])), Attempt: stream.Attempt(binary.BigEndian.Uint64(b[9:])),
		Request: slices.Clone(b[PlaceHead:])}
	if p.Round == 0 || p.Attempt == 0 {
		return Place{}, errPlace
	}
	return p, nil
}

// Bytes encodes an answer.
func (a Answer) Bytes() []byte {
	b := append(append(make([]byte, 0, answerSize), version), a.ID[:]...)
	return append(binary.BigEndian.AppendUint64(append(b, byte(a.Status)), a.Sequence), byte(a.Reason))
}

// ParseAnswer decodes what Bytes wrote, and nothing else.
func ParseAnswer(b []byte) (Answer, error) {
	if len(b) != answerSize || b[0] != version {
		return Answer{}, errAnswer
	}
	a := Answer{ID: [16]byte(b[1:17]), Status: stream.AckStatus(b[17]), Sequence: binary.BigEndian.Uint64(b[18:]),
		Reason: stream.Reason(b[26])}
	refused := a.Status == stream.Refused
	if a.Status <= stream.Unknown || a.Status > stream.Refused || refused == (a.Sequence > 0) || !refused && a.Reason > 0 {
		return Answer{}, errAnswer
	}
	return a, nil
}
