package stream

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// A PlaceRequest requests places in an attempt, before anybody is charged for it. It contains nothing about events, and
// no value that a report has: their bytes do not reveal which request and report belong together.
//
// Bytes, 22:
//
//	version   1 byte, 1
//	id       16 bytes, random; the same id gets the same answer
//	users     4 bytes, big endian, at least 1
//	charged   1 byte; 1: an earlier attempt at the round has charged these users
type PlaceRequest struct {
	ID      [16]byte
	Users   uint32
	Charged bool
}

// A PlaceAnswer answers a PlaceRequest. It is not signed: a place protects nothing and proves nothing.
//
// Bytes, 26:
//
//	version   1 byte, 1
//	id       16 bytes, of the request
//	verdict   1 byte, of PlaceVerdict
//	users     4 bytes, big endian; 0 unless granted
//	time      4 bytes, big endian, milliseconds
type PlaceAnswer struct {
	ID      [16]byte
	Verdict PlaceVerdict
	Users   uint32        // granted, at most those asked for
	Time    time.Duration // PlaceGranted: how long the places are kept; PlaceWait: after what time to repeat the request
}

// A PlaceVerdict is the answer to a request for places.
type PlaceVerdict byte

// PlaceGranted: some users may join, for a time. PlaceWait: repeat the request after a time. PlaceOver: the attempt
// takes nobody any more.
const (
	PlaceGranted PlaceVerdict = iota + 1
	PlaceWait
	PlaceOver
)

const (
	placeVersion     = 1
	placeRequestSize = 1 + 16 + 4 + 1
	placeAnswerSize  = 1 + 16 + 1 + 4 + 4
)

var (
	errPlaceRequest = errors.New("not a request for places that this program reads")
	errPlaceAnswer  = errors.New("not an answer about places that this program reads")
)

// Record encodes a request.
func (p PlaceRequest) Record() []byte {
	b := append(make([]byte, 0, placeRequestSize), placeVersion)
	b = binary.BigEndian.AppendUint32(append(b, p.ID[:]...), p.Users)
	if p.Charged {
		return append(b, 1)
	}
	return append(b, 0)
}

// ParsePlaceRequest decodes what Record wrote, and nothing else.
func ParsePlaceRequest(data []byte) (PlaceRequest, error) {
	if len(data) != placeRequestSize || data[0] != placeVersion || data[21] > 1 {
		return PlaceRequest{}, errPlaceRequest
	}
	p := PlaceRequest{ID: [16]byte(data[1:17]), Users: binary.BigEndian.Uint32(data[17:]), Charged: data[21] == 1}
	if p.Users == 0 {
		return PlaceRequest{}, errPlaceRequest
	}
	return p, nil
}

// Record encodes an answer; a time is cut to whole milliseconds.
func (p PlaceAnswer) Record() []byte {
	b := append(append(make([]byte, 0, placeAnswerSize), placeVersion), p.ID[:]...)
	b = binary.BigEndian.AppendUint32(append(b, byte(p.Verdict)), p.Users)
	return binary.BigEndian.AppendUint32(b, uint32(min(p.Time.Milliseconds(), math.MaxUint32)))
}

// ParsePlaceAnswer decodes what Record wrote, and nothing else.
func ParsePlaceAnswer(data []byte) (PlaceAnswer, error) {
	if len(data) != placeAnswerSize || data[0] != placeVersion {
		return PlaceAnswer{}, errPlaceAnswer
	}
	p := PlaceAnswer{ID: [16]byte(data[1:17]), Verdict: PlaceVerdict(data[17]), Users: binary.BigEndian.Uint32(data[18:]),
		Time: time.Duration(binary.BigEndian.Uint32(data[22:])) * time.Millisecond}
	if p.Verdict < PlaceGranted || p.Verdict > PlaceOver || (p.Verdict == PlaceGranted) != (p.Users > 0) {
		return PlaceAnswer{}, errPlaceAnswer
	}
	return p, nil
}
