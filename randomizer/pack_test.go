package randomizer

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestPackLayout(t *testing.T) {
	p := Params{Dim: 3, ClipNorm: 1, Levels: 4, Trials: 3, Coin: Fair} // 3 bits a count
	if got, want := p.Pack([]byte{0xee}, []uint32{1, 7, 4}), []byte{0xee, 0b00_111_001, 0b1}; !bytes.Equal(got, want) {
		t.Errorf("packed %08b, want %08b", got, want)
	}
}

func TestUnpackInvertsPack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := Params{ClipNorm: 1, Coin: Fair,
			Dim:    rapid.IntRange(1, 70).Draw(rt, "d"),
			Levels: rapid.OneOf(rapid.Uint32Range(1, 20), rapid.Uint32Range(1, MaxLevels)).Draw(rt, "g"),
			Trials: rapid.OneOf(rapid.Uint32Range(0, 20), rapid.Uint32Range(0, MaxTrials)).Draw(rt, "b")}
		counts := rapid.SliceOfN(rapid.Uint32Range(0, p.MaxCount()), p.Dim, p.Dim).Draw(rt, "counts")
		packed := p.Pack(nil, counts)
		if len(packed) != p.ReportBytes() {
			rt.Fatalf("%d bytes, want %d", len(packed), p.ReportBytes())
		}
		got, err := p.Unpack(nil, packed)
		if err != nil || !slices.Equal(got, counts) {
			rt.Fatalf("got %v, %v; want %v", got, err, counts)
		}
	})
}

func TestUnpackRefuses(t *testing.T) {
	p := Params{Dim: 3, ClipNorm: 1, Levels: 4, Trials: 2, Coin: Fair} // counts up to 6 in 3 bits
	good := p.Pack(nil, []uint32{6, 0, 6})
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"empty":   {nil, errReportLength},
		"short":   {good[:1], errReportLength},
		"long":    {append(slices.Clone(good), 0), errReportLength},
		"range":   {[]byte{7, 0}, errReportRange},
		"padding": {[]byte{0, 0x80}, errReportRange},
	} {
		if _, err := p.Unpack(nil, c.data); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
	}
	kept := make([]uint32, 3)
	if _, err := p.Unpack(kept, []byte{0b00_111_101, 0}); err == nil || kept[0] != 0 {
		t.Errorf("a refused report stays in the buffer: %v, %v", kept, err)
	}
}

func TestPackPanicsOnBrokenInvariants(t *testing.T) {
	p := Params{Dim: 1, ClipNorm: 1, Levels: 4, Trials: 2, Coin: Fair}
	for _, counts := range [][]uint32{nil, {7}, {1, 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Pack of %d counts did not panic", len(counts))
				}
			}()
			p.Pack(nil, counts)
		}()
	}
}

// Whatever unpacks packs to the same bytes.
func FuzzUnpack(f *testing.F) {
	f.Add(uint16(3), uint32(4), uint32(2), []byte{1, 2})
	f.Add(uint16(1), uint32(MaxLevels), uint32(MaxTrials), []byte{1, 2, 3, 4})
	f.Add(uint16(9), uint32(1), uint32(0), []byte{0xff, 1})
	f.Fuzz(func(t *testing.T, dim uint16, levels, trials uint32, data []byte) {
		p := Params{Dim: int(dim), ClipNorm: 1, Levels: levels, Trials: trials, Coin: Fair}
		if p.Validate() != nil {
			return
		}
		counts, err := p.Unpack(nil, data)
		if err != nil {
			if !errors.Is(err, errReportLength) && !errors.Is(err, errReportRange) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if again := p.Pack(nil, counts); !bytes.Equal(again, data) {
			t.Fatalf("%x unpacks, and packs to %x", data, again)
		}
	})
}
