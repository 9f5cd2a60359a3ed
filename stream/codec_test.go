package stream_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

func TestEveryMessageSurvives(t *testing.T) {
	for kind, empty := range kinds() {
		t.Run(kind, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := valid(t, kind)
				data, err := stream.Marshal(m)
				if err != nil {
					t.Fatal(err)
				}
				got := empty()
				if err := stream.Unmarshal(data, got); err != nil {
					t.Fatalf("%v\n%v", err, m)
				}
				if !proto.Equal(m, got) {
					t.Fatalf("got %v, want %v", got, m)
				}
				again, err := stream.Marshal(got)
				if err != nil || !bytes.Equal(again, data) {
					t.Fatal("another encoding")
				}
				clear(data)
				if !proto.Equal(m, got) {
					t.Fatal("the message refers to the bytes that it was read from")
				}
			})
		})
	}
}

// TestOneEncoding: whatever else decodes to the same message is refused.
func TestOneEncoding(t *testing.T) {
	for kind, empty := range kinds() {
		t.Run(kind, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				data, err := stream.Marshal(valid(t, kind))
				if err != nil {
					t.Fatal(err)
				}
				var fields [][]byte
				for rest := data; len(rest) > 0; {
					_, _, n := protowire.ConsumeField(rest)
					fields = append(fields, rest[:n])
					rest = rest[n:]
				}
				i := rapid.IntRange(0, len(fields)-1).Draw(t, "field")
				unknown := protowire.AppendVarint(protowire.AppendTag(nil, 100, protowire.VarintType), 1)
				changes := map[string][]byte{
					"unknown field last":  append(slices.Clone(data), unknown...),
					"unknown field first": append(slices.Clone(unknown), data...),
					"field repeated":      append(slices.Clone(data), fields[0]...),
					"cut":                 data[:len(data)-1],
				}
				if len(fields) > 1 && i > 0 && fields[i][0] != fields[i-1][0] {
					swapped := slices.Clone(fields)
					swapped[i], swapped[i-1] = swapped[i-1], swapped[i]
					changes["fields swapped"] = slices.Concat(swapped...)
				}
				if fields[0][0]&7 == byte(protowire.VarintType) {
					long := []byte{fields[0][0], fields[0][1] | 0x80, 0}
					changes["long varint"] = append(long, data[2:]...)
				}
				for name, change := range changes {
					if err := stream.Unmarshal(change, empty()); err == nil {
						t.Errorf("%s: accepted", name)
					}
				}
				err = stream.Unmarshal(changes["unknown field last"], empty())
				if !errors.Is(err, stream.ErrNotCanonical) {
					t.Errorf("unknown field: %v", err)
				}
			})
		})
	}
}

func TestNestedUnknownFieldRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := valid(t, "Task").(*wire.Task)
		m.Plan.Phases[0].Mechanism.ProtoReflect().SetUnknown(protoreflect.RawFields(protowire.AppendVarint(
			protowire.AppendTag(nil, 50, protowire.VarintType), 7)))
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Unmarshal(data, &wire.Task{}); !errors.Is(err, stream.ErrNotCanonical) {
			t.Fatalf("an unknown field of the mechanism: %v", err)
		}
	})
}

func TestOtherVersionsRefused(t *testing.T) {
	for kind, empty := range kinds() {
		for _, version := range []uint32{0, 2, 7, 1<<32 - 1} {
			rapid.Check(t, func(t *rapid.T) {
				m := valid(t, kind)
				m.ProtoReflect().Set(m.ProtoReflect().Descriptor().Fields().ByName("version"), protoreflect.ValueOfUint32(version))
				data, err := stream.Marshal(m)
				if err != nil {
					t.Fatal(err)
				}
				err = stream.Unmarshal(data, empty())
				var v *stream.VersionError
				if !errors.As(err, &v) || v.Got != version || v.Want != stream.Version {
					t.Fatalf("%s of version %d: %v", kind, version, err)
				}
				if text := err.Error(); !strings.Contains(text, fmt.Sprint(version)) || !strings.Contains(text, "speaks 1") ||
					!strings.Contains(text, "use builds of one wire version") || !strings.Contains(text, "docs/how-to/upgrades.md") {
					t.Fatalf("want both numbers and the way out: %s", text)
				}
			})
		}
	}
}

func TestPartsDoNotTravelAlone(t *testing.T) {
	for _, m := range []proto.Message{&wire.Plan{Delta: 1}, &wire.Phase{Users: 1}, &wire.Mechanism{Dim: 1},
		&wire.Reject{Count: 1}} {
		data, err := stream.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Unmarshal(data, m); err == nil {
			t.Errorf("%T was accepted", m)
		}
	}
}

// FuzzUnmarshal: decoding then encoding gives the same bytes, or decoding is an error; nothing panics, and no error
// quotes the payload.
func FuzzUnmarshal(f *testing.F) {
	names := slices.Sorted(func(yield func(string) bool) {
		for k := range kinds() {
			if !yield(k) {
				return
			}
		}
	})
	for i, kind := range names {
		m := rapid.Custom(func(t *rapid.T) proto.Message { return valid(t, kind) }).Example(i)
		data, err := stream.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(i), data)
	}
	f.Fuzz(func(t *testing.T, which byte, data []byte) {
		m := kinds()[names[int(which)%len(names)]]()
		if err := stream.Unmarshal(data, m); err != nil {
			if len(err.Error()) > 4096 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		again, err := stream.Marshal(m)
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("%x decodes, and encodes as %x, %v", data, again, err)
		}
	})
}
