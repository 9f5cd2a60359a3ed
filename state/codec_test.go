package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"
)

func sampleCheckpoint() Checkpoint {
	return Checkpoint{
		Cursor:    Cursor{TaskHash: testTask, Round: 3, BatchHash: testBatch, BatchSequence: 17},
		Ledger:    sampleLedger(),
		Algorithm: []byte("algorithm"), Task: []byte("task"), NextRound: []byte("round 4"), LastBatch: []byte("batch"),
	}
}

// sampleLedger returns a ledger of three rounds, the second of them void, with round 4 reserved.
func sampleLedger() Ledger {
	open := reservation(4, 0.5)
	open.Kind, open.Sequence, open.Previous, open.Phase = Reserved, 7, Hash{9}, 1
	open.Hash = open.computeHash()
	return Ledger{Head: head{Length: 7, Hash: open.Hash}, TaskHash: testTask, Open: open, Steps: 2, Voids: 1,
		Counted: 100, Phase: 1, Most: 90, Worst: Cost{Epsilon: 0.5, Delta: 1e-6}}
}

func sampleEntry() Entry {
	e := batch(3, 0.5)
	e.Kind, e.Sequence, e.Previous = Spent, 6, Hash{9}
	e.Hash = e.computeHash()
	return e
}

// Golden encodings: a change here is a new version of the format.
const (
	goldenCheckpoint = "504c434b0001" +
		"0100000000000000000000000000000000000000000000000000000000000000" + "0000000000000003" +
		"0200000000000000000000000000000000000000000000000000000000000000" + "0000000000000011" + goldenSums +
		"0000000000000009" + "616c676f726974686d" + "0000000000000004" + "7461736b" +
		"0000000000000007" + "726f756e642034" + "0000000000000000" + "0000000000000005" + "6261746368"
	goldenSums = "0000000000000007" + goldenOpenHash +
		"0100000000000000000000000000000000000000000000000000000000000000" +
		"0000000000000002" + "0000000000000001" + "0000000000000000" + "0000000000000064" + "0000000000000001" +
		"000000000000005a" +
		"3fe0000000000000" + "3eb0c6f7a0b5ed8d" + "01" + goldenOpen + goldenOpenHash
	goldenOpenHash = "3a2f3896f8800333a41e324a486be0cddda53a68998f96057827f4399b92ba49"
	goldenOpen     = "504c4c45000101" +
		"0000000000000007" + "0000000000000004" + "0000000000000000" + "000000000000005a" + "0000000000000384" +
		"0000000000000001" +
		"3fe0000000000000" + "3eb0c6f7a0b5ed8d" +
		"0100000000000000000000000000000000000000000000000000000000000000" +
		"0000000000000000000000000000000000000000000000000000000000000000" +
		"0900000000000000000000000000000000000000000000000000000000000000"
	goldenEntry = "504c4c45000102" +
		"0000000000000006" + "0000000000000003" + "0000000000000001" + "0000000000000064" + "00000000000003e8" +
		"0000000000000000" +
		"3fe0000000000000" + "3eb0c6f7a0b5ed8d" +
		"0100000000000000000000000000000000000000000000000000000000000000" +
		"0200000000000000000000000000000000000000000000000000000000000000" +
		"0900000000000000000000000000000000000000000000000000000000000000"
)

func TestGoldenEncodings(t *testing.T) {
	c, err := sampleCheckpoint().MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(c[:len(c)-32]); got != goldenCheckpoint {
		t.Errorf("checkpoint encodes to\n%s, want\n%s", got, goldenCheckpoint)
	}
	l, err := sampleLedger().MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := hex.EncodeToString(l[:len(l)-32]), "504c4c530001"+goldenSums; got != want {
		t.Errorf("sums encode to\n%s, want\n%s", got, want)
	}
	e, err := sampleEntry().MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(e[:entryBody]); got != goldenEntry {
		t.Errorf("entry encodes to\n%s, want\n%s", got, goldenEntry)
	}
}

// TestEveryByteCounts changes, cuts and extends encodings: nothing but the original is accepted.
func TestEveryByteCounts(t *testing.T) {
	c, _ := sampleCheckpoint().MarshalBinary()
	l, _ := sampleLedger().MarshalBinary()
	e, _ := sampleEntry().MarshalBinary()
	for _, test := range []struct {
		name   string
		data   []byte
		decode func([]byte) error
	}{
		{"checkpoint", c, func(b []byte) error { return new(Checkpoint).UnmarshalBinary(b) }},
		{"ledger", l, func(b []byte) error { return new(Ledger).UnmarshalBinary(b) }},
		{"entry", e, func(b []byte) error { return new(Entry).UnmarshalBinary(b) }},
	} {
		if err := test.decode(test.data); err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		for i := range test.data {
			for bit := range 8 {
				b := bytes.Clone(test.data)
				b[i] ^= 1 << bit
				if test.decode(b) == nil {
					t.Errorf("%s with bit %d of byte %d flipped was accepted", test.name, bit, i)
				}
			}
			if test.decode(test.data[:i]) == nil {
				t.Errorf("%s cut to %d bytes was accepted", test.name, i)
			}
		}
		if test.decode(append(bytes.Clone(test.data), 0)) == nil {
			t.Errorf("%s with one more byte was accepted", test.name)
		}
		newer := bytes.Clone(test.data)
		newer[5] = 9
		var version *VersionError
		if err := test.decode(newer); !errors.As(err, &version) || version.Got != 9 || version.Want != 1 {
			t.Errorf("%s of version 9: %v, want a VersionError with both numbers", test.name, err)
		}
	}
}

func TestDecodingCopies(t *testing.T) {
	data, _ := sampleCheckpoint().MarshalBinary()
	var c Checkpoint
	if err := c.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] = 0
	}
	if !c.Equal(sampleCheckpoint()) {
		t.Error("a decoded checkpoint changes with its input")
	}
	before := c.Clone()
	if err := c.UnmarshalBinary(data); err == nil || !c.Equal(before) {
		t.Errorf("a failed decoding returned %v or changed its receiver", err)
	}
}

func FuzzCheckpoint(f *testing.F) {
	data, _ := sampleCheckpoint().MarshalBinary()
	f.Add(data)
	ended := sampleCheckpoint()
	ended.NextRound, ended.End = nil, []byte("end")
	data, _ = ended.MarshalBinary()
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		var c Checkpoint
		// The checksum would hide everything behind it from the fuzzer, so it is made right.
		for _, data := range [][]byte{data, resummed(data)} {
			if c.UnmarshalBinary(data) != nil {
				continue
			}
			again, err := c.MarshalBinary()
			if err != nil || !bytes.Equal(again, data) {
				t.Fatalf("decode then encode changed the bytes (%v)", err)
			}
		}
	})
}

func FuzzLedger(f *testing.F) {
	data, _ := sampleLedger().MarshalBinary()
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		var l Ledger
		for _, data := range [][]byte{data, resummed(data)} {
			if l.UnmarshalBinary(data) != nil {
				continue
			}
			again, err := l.MarshalBinary()
			if err != nil || !bytes.Equal(again, data) {
				t.Fatalf("decode then encode changed the bytes (%v)", err)
			}
		}
	})
}

func FuzzEntry(f *testing.F) {
	data, _ := sampleEntry().MarshalBinary()
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		var e Entry
		for _, data := range [][]byte{data, rehashed(data)} {
			if e.UnmarshalBinary(data) != nil {
				continue
			}
			again, err := e.MarshalBinary()
			if err != nil || !bytes.Equal(again, data) {
				t.Fatalf("decode then encode changed the bytes (%v)", err)
			}
		}
	})
}

func TestHashText(t *testing.T) {
	want := Hash{0xab, 31: 0x01}
	text, _ := want.MarshalText()
	var got Hash
	if err := got.UnmarshalText(text); err != nil || got != want || want.String() != string(text) {
		t.Errorf("hash came back as %s, %v", got, err)
	}
	for _, bad := range []string{"", "ab", string(bytes.ToUpper(text)), string(text) + "00", "zz" + string(text[2:])} {
		if err := got.UnmarshalText([]byte(bad)); err == nil || got != want {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// resummed returns data with the checksum that its other bytes have.
func resummed(data []byte) []byte {
	data = bytes.Clone(data)
	if len(data) < sha256.Size {
		return data
	}
	body := data[:len(data)-sha256.Size]
	sum := sha256.Sum256(body)
	return append(body, sum[:]...)
}

// rehashed returns an encoded entry with the hash that its other bytes have.
func rehashed(data []byte) []byte {
	if len(data) != EntryBytes {
		return data
	}
	sum := sha256.Sum256(append([]byte(entryDomain), data[:entryBody]...))
	return append(bytes.Clone(data[:entryBody]), sum[:]...)
}
