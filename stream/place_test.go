package stream

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What Record writes is read back, and no other bytes of that length decode.
func TestPlaceRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		request := PlaceRequest{ID: id, Users: rapid.Uint32Min(1).Draw(t, "users"), Charged: rapid.Bool().Draw(t, "charged")}
		if got, err := ParsePlaceRequest(request.Record()); err != nil || got != request {
			t.Fatalf("got %v, %v: want %v", got, err, request)
		}
		answer := PlaceAnswer{ID: id, Verdict: PlaceVerdict(rapid.IntRange(1, 3).Draw(t, "verdict")),
			Time: time.Duration(rapid.Uint32().Draw(t, "ms")) * time.Millisecond}
		if answer.Verdict == PlaceGranted {
			answer.Users = request.Users
		}
		if got, err := ParsePlaceAnswer(answer.Record()); err != nil || got != answer {
			t.Fatalf("got %v, %v: want %v", got, err, answer)
		}
		size := rapid.SampledFrom([]int{placeRequestSize, placeAnswerSize}).Draw(t, "size")
		data := rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "data")
		data[0] = placeVersion
		if got, err := ParsePlaceRequest(data); err == nil && string(got.Record()) != string(data) {
			t.Fatalf("%x decodes and is not what the encoder writes", data)
		}
		if got, err := ParsePlaceAnswer(data); err == nil && string(got.Record()) != string(data) {
			t.Fatalf("%x decodes and is not what the encoder writes", data)
		}
	})
}

func TestPlaceRefusals(t *testing.T) {
	whole := PlaceRequest{ID: [16]byte{1}, Users: 1}.Record()
	none, version, flag := append([]byte{}, whole...), append([]byte{}, whole...), append([]byte{}, whole...)
	none[20], version[0], flag[21] = 0, 2, 2
	for name, data := range map[string][]byte{"empty": nil, "short": whole[:21], "long": append(whole, 0), "nobody": none,
		"version": version, "flag": flag} {
		if _, err := ParsePlaceRequest(data); err == nil {
			t.Errorf("%s: a request that decodes: %x", name, data)
		}
	}
	for name, answer := range map[string]PlaceAnswer{"granted to nobody": {Verdict: PlaceGranted}, "no verdict": {},
		"unknown verdict": {Verdict: 4}, "users of a wait": {Verdict: PlaceWait, Users: 1}} {
		if _, err := ParsePlaceAnswer(answer.Record()); err == nil {
			t.Errorf("%s: decodes", name)
		}
	}
}
