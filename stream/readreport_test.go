package stream_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// ReadReport is Unmarshal, for reports and for whatever else comes: the same errors, the same fields.
func FuzzReadReport(f *testing.F) {
	id := make([]byte, stream.ReportIDSize)
	for _, r := range []*wire.Report{
		{Version: stream.Version, TaskHash: make([]byte, stream.HashSize), Ids: [][]byte{id}, Encapsulated: make([]byte, 32),
			Ciphertext: make([]byte, 300)},
		{Version: stream.Version, TaskHash: make([]byte, stream.HashSize), Ids: [][]byte{id, id, id}, Ciphertext: []byte{1}},
		{Version: stream.Version, TaskHash: make([]byte, stream.HashSize), Ids: [][]byte{id}},
		{Version: stream.Version, TaskHash: make([]byte, stream.HashSize), Ciphertext: []byte{1}},
		{Version: stream.Version + 1, TaskHash: make([]byte, stream.HashSize), Ids: [][]byte{id}},
		{Version: stream.Version, TaskHash: make([]byte, 31), Ids: [][]byte{id[:15]}, Ciphertext: []byte{1}},
	} {
		data, err := stream.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(append(data, data[2:]...))
		f.Add(append(data, 0x2a, 0))                                              // a field without bytes
		f.Add(append(data, 0x2a, 0x81, 0, 7))                                     // a long length
		f.Add(append(data, 0x2a, 2, 7))                                           // more than there is
		f.Add(append([]byte{0x88, 0}, data[1:]...))                               // a long tag
		f.Add(append(data, 0x2a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f)) // no end
	}
	reused := new(wire.Report)
	f.Fuzz(func(t *testing.T, data []byte) {
		want := new(wire.Report)
		wrong := stream.Unmarshal(data, want)
		err := stream.ReadReport(data, reused)
		if (err == nil) != (wrong == nil) || err != nil && err.Error() != wrong.Error() {
			t.Fatalf("%x: %v, want %v", data, err, wrong)
		}
		if err == nil && !proto.Equal(reused, want) {
			t.Fatalf("%x: %v, want %v", data, reused, want)
		}
	})
}

// What Marshal writes is read without a copy: the way that the stage is built for.
func TestReadReportRefersToItsBytes(t *testing.T) {
	r := new(wire.Report)
	rapid.Check(t, func(rt *rapid.T) {
		size := func(label string) int { return rapid.IntRange(0, 400).Draw(rt, label) }
		want := &wire.Report{Version: stream.Version, TaskHash: make([]byte, stream.HashSize),
			Encapsulated: make([]byte, size("enc")), Ciphertext: make([]byte, size("ciphertext"))}
		for range rapid.IntRange(1, 70).Draw(rt, "users") {
			want.Ids = append(want.Ids, make([]byte, stream.ReportIDSize))
		}
		data, err := stream.Marshal(want)
		if err != nil {
			rt.Fatal(err)
		}
		if err := stream.ReadReport(data, r); err != nil || !proto.Equal(r, want) {
			rt.Fatalf("%v: got %v, want %v", err, r, want)
		}
		for i := range data {
			data[i] = 0xff
		}
		for _, field := range append(r.Ids, r.TaskHash, r.Encapsulated, r.Ciphertext) {
			for _, b := range field {
				if b != 0xff {
					rt.Fatal("a field does not refer to the bytes that it was read from")
				}
			}
		}
	})
	// Of a list of ids that has grown, further messages allocate nothing.
	data, err := stream.Marshal(&wire.Report{Version: stream.Version, TaskHash: make([]byte, stream.HashSize),
		Ids: [][]byte{make([]byte, stream.ReportIDSize)}, Ciphertext: []byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { _ = stream.ReadReport(data, r) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
