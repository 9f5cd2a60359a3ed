package seal_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

func suites() []wire.Suite {
	return []wire.Suite{wire.Suite_SUITE_NONE, wire.Suite_SUITE_X25519, wire.Suite_SUITE_MLKEM768_X25519}
}

func sealedSuites() []wire.Suite { return suites()[1:] }

// attempt returns a round key and the context of its attempt.
func attempt(t testing.TB, suite wire.Suite) (*seal.RoundKey, seal.Context) {
	t.Helper()
	k, err := seal.NewRoundKey(suite)
	if err != nil {
		t.Fatal(err)
	}
	return k, seal.Context{ManifestHash: stream.Hash{1, 2, 3}, Attempt: 4, StageKey: bytes.Repeat([]byte{6}, 32),
		Public: k.Public()}
}

func TestReportsOpen(t *testing.T) {
	for _, suite := range suites() {
		k, c := attempt(t, suite)
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.IntRange(1, 5).Draw(t, "users")
			ids := make([][16]byte, n)
			for i := range ids {
				copy(ids[i][:], rapid.SliceOfN(rapid.Byte(), 15, 15).Draw(t, "id"))
				ids[i][15] = byte(i)
			}
			plaintext := rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "plaintext")
			r, err := seal.Seal(suite, c, stream.Hash{9}, ids, plaintext)
			if err != nil {
				t.Fatal(err)
			}
			data, err := stream.Marshal(r)
			if err != nil || len(data) != seal.ReportSize(suite, n, len(plaintext)) {
				t.Fatalf("%d bytes, ReportSize says %d, %v", len(data), seal.ReportSize(suite, n, len(plaintext)), err)
			}
			if enc, ct := seal.SealedSize(suite, len(plaintext)); len(r.Encapsulated) != enc || len(r.Ciphertext) != ct {
				t.Fatalf("%d and %d bytes, SealedSize says %d and %d", len(r.Encapsulated), len(r.Ciphertext), enc, ct)
			}
			var read wire.Report
			if err := stream.Unmarshal(data, &read); err != nil {
				t.Fatal(err)
			}
			got, err := k.Open(c, &read)
			if err != nil || !bytes.Equal(got, plaintext) {
				t.Fatalf("%x, %v", got, err)
			}
			clear(got) // the caller's to overwrite
			if suite == wire.Suite_SUITE_NONE {
				if !bytes.Equal(read.Ciphertext, got) {
					t.Fatal("an unsealed report is copied: two places to overwrite")
				}
				return
			}
			if again, err := k.Open(c, &read); err != nil || !bytes.Equal(again, plaintext) {
				t.Fatalf("opened again: %x, %v", again, err)
			}
		})
	}
}

// TestReportSizeOfLargeFields crosses the lengths at which a varint grows.
func TestReportSizeOfLargeFields(t *testing.T) {
	for _, suite := range suites() {
		_, c := attempt(t, suite)
		for _, n := range []int{1, 100, 111, 112, 127, 128, 1000, 16367, 16368, 16383, 16384, 1 << 20} {
			r, err := seal.Seal(suite, c, stream.Hash{9}, [][16]byte{{1}}, make([]byte, n))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := proto.Size(r), seal.ReportSize(suite, 1, n); got != want {
				t.Errorf("%v, %d bytes: %d, ReportSize says %d", suite, n, got, want)
			}
		}
	}
}

// TestNothingOpensChanged: a report opens under the context, ids and bytes that it was sealed with, and no others.
func TestNothingOpensChanged(t *testing.T) {
	for _, suite := range sealedSuites() {
		k, c := attempt(t, suite)
		ids := [][16]byte{{1}, {2}}
		sealed, err := seal.Seal(suite, c, stream.Hash{9}, ids, []byte("counts of two"))
		if err != nil {
			t.Fatal(err)
		}
		type attack struct {
			context func(*seal.Context)
			report  func(*wire.Report)
		}
		context := func(f func(*seal.Context)) attack { return attack{f, func(*wire.Report) {}} }
		report := func(f func(*wire.Report)) attack { return attack{func(*seal.Context) {}, f} }
		for name, a := range map[string]attack{
			"another manifest":          context(func(c *seal.Context) { c.ManifestHash[31]++ }),
			"another attempt":           context(func(c *seal.Context) { c.Attempt++ }),
			"another stage":             context(func(c *seal.Context) { c.StageKey = bytes.Repeat([]byte{7}, 32) }),
			"another id":                report(func(r *wire.Report) { r.Ids[0] = bytes.Repeat([]byte{3}, 16) }),
			"ids in another order":      report(func(r *wire.Report) { r.Ids[0], r.Ids[1] = r.Ids[1], r.Ids[0] }),
			"a user less":               report(func(r *wire.Report) { r.Ids = r.Ids[:1] }),
			"a user more":               report(func(r *wire.Report) { r.Ids = append(r.Ids, bytes.Repeat([]byte{3}, 16)) }),
			"an encapsulation of zeros": report(func(r *wire.Report) { clear(r.Encapsulated) }),
			"a changed encapsulation":   report(func(r *wire.Report) { r.Encapsulated[5] ^= 1 }),
			"a short encapsulation":     report(func(r *wire.Report) { r.Encapsulated = r.Encapsulated[1:] }),
			"no encapsulation":          report(func(r *wire.Report) { r.Encapsulated = nil }),
			"a changed ciphertext":      report(func(r *wire.Report) { r.Ciphertext[0] ^= 1 }),
			"a changed tag":             report(func(r *wire.Report) { r.Ciphertext[len(r.Ciphertext)-1] ^= 1 }),
			"a short ciphertext":        report(func(r *wire.Report) { r.Ciphertext = r.Ciphertext[:15] }),
			"only a tag":                report(func(r *wire.Report) { r.Ciphertext = r.Ciphertext[:16] }),
			"a long ciphertext":         report(func(r *wire.Report) { r.Ciphertext = append(r.Ciphertext, 0) }),
			"no ciphertext":             report(func(r *wire.Report) { r.Ciphertext = nil }),
		} {
			other, r := c, proto.Clone(sealed).(*wire.Report)
			a.context(&other)
			a.report(r)
			if got, err := k.Open(other, r); !errors.Is(err, seal.ErrOpen) || got != nil {
				t.Errorf("%v, %s: %q, %v", suite, name, got, err)
			}
		}
		stranger, _ := attempt(t, suite)
		stolen := c
		stolen.Public = stranger.Public()
		if _, err := stranger.Open(stolen, sealed); !errors.Is(err, seal.ErrOpen) {
			t.Errorf("%v, another key: %v", suite, err)
		}
		if _, err := k.Open(stolen, sealed); err == nil {
			t.Errorf("%v: opened under a context that names another key", suite)
		}
		if got, err := k.Open(c, sealed); err != nil || string(got) != "counts of two" {
			t.Errorf("%v, unchanged: %q, %v", suite, got, err)
		}
	}
}

// TestOneCiphertextOneID: a broker cannot have one report counted under two ids, alone or in a bundle.
func TestOneCiphertextOneID(t *testing.T) {
	for _, suite := range sealedSuites() {
		k, c := attempt(t, suite)
		r, err := seal.Seal(suite, c, stream.Hash{9}, [][16]byte{{1}}, []byte("counts"))
		if err != nil {
			t.Fatal(err)
		}
		for _, ids := range [][][]byte{{make([]byte, 16)}, {r.Ids[0], r.Ids[0]}, {r.Ids[0], make([]byte, 16)}} {
			replay := proto.Clone(r).(*wire.Report)
			replay.Ids = ids
			if _, err := k.Open(c, replay); !errors.Is(err, seal.ErrOpen) {
				t.Errorf("%v: opened under %d other ids: %v", suite, len(ids), err)
			}
		}
	}
}

func TestErase(t *testing.T) {
	for _, suite := range suites() {
		k, c := attempt(t, suite)
		r, err := seal.Seal(suite, c, stream.Hash{9}, [][16]byte{{1}}, []byte("counts"))
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for {
					if _, err := k.Open(c, r); err != nil {
						if !errors.Is(err, seal.ErrErased) {
							t.Errorf("%v: %v", suite, err)
						}
						return
					}
				}
			})
		}
		k.Erase()
		if _, err := k.Open(c, r); !errors.Is(err, seal.ErrErased) {
			t.Errorf("%v after Erase: %v", suite, err)
		}
		if private, _ := seal.RoundKeyBytesForTest(k); private != nil {
			t.Errorf("%v: the key is still there", suite)
		}
		if !bytes.Equal(k.Public(), c.Public) {
			t.Errorf("%v: the public key is gone", suite)
		}
		k.Erase()
		group.Wait()
	}
}

func TestSealRefuses(t *testing.T) {
	_, c := attempt(t, wire.Suite_SUITE_X25519)
	hybrid, _ := attempt(t, wire.Suite_SUITE_MLKEM768_X25519)
	one := [][16]byte{{1}}
	for name, call := range map[string]func() (*wire.Report, error){
		"no plaintext": func() (*wire.Report, error) { return seal.Seal(2, c, stream.Hash{}, one, nil) },
		"no ids":       func() (*wire.Report, error) { return seal.Seal(2, c, stream.Hash{}, nil, []byte("x")) },
		"an id twice": func() (*wire.Report, error) {
			return seal.Seal(2, c, stream.Hash{}, [][16]byte{{1}, {1}},
				[]byte("x"))
		},
		"a bundle over the limit": func() (*wire.Report, error) {
			ids := make([][16]byte, stream.MaxBundle+1)
			for i := range ids {
				ids[i] = [16]byte{byte(i), byte(i >> 8), byte(i >> 16)}
			}
			return seal.Seal(2, c, stream.Hash{}, ids, []byte("x"))
		},
		"another suite's key": func() (*wire.Report, error) {
			c := c
			c.Public = hybrid.Public()
			return seal.Seal(2, c, stream.Hash{}, one, []byte("x"))
		},
		"a low-order key": func() (*wire.Report, error) {
			c := c
			c.Public = make([]byte, 32)
			return seal.Seal(2, c, stream.Hash{}, one, []byte("x"))
		},
		"a key without encryption": func() (*wire.Report, error) { return seal.Seal(1, c, stream.Hash{}, one, []byte("x")) },
		"no suite":                 func() (*wire.Report, error) { return seal.Seal(0, c, stream.Hash{}, one, []byte("x")) },
		"attempt 0": func() (*wire.Report, error) {
			c := c
			c.Attempt = 0
			return seal.Seal(2, c, stream.Hash{}, one, []byte("x"))
		},
		"no stage key": func() (*wire.Report, error) {
			c := c
			c.StageKey = ed25519.PublicKey{}
			return seal.Seal(2, c, stream.Hash{}, one, []byte("x"))
		},
	} {
		if r, err := call(); err == nil || r != nil {
			t.Errorf("%s: sealed", name)
		}
	}
	for _, suite := range []wire.Suite{0, -1, 4} {
		if _, err := seal.NewRoundKey(suite); err == nil {
			t.Errorf("a round key of suite %d", suite)
		}
	}
}

// FuzzPeerKey: no public key of a peer panics.
func FuzzPeerKey(f *testing.F) {
	for _, suite := range sealedSuites() {
		_, c := attempt(f, suite)
		f.Add(int32(suite), c.Public)
	}
	f.Add(int32(2), make([]byte, 32))
	f.Add(int32(3), make([]byte, 1216))
	f.Fuzz(func(t *testing.T, suite int32, public []byte) {
		c := seal.Context{Attempt: 1, StageKey: make([]byte, 32), Public: public}
		err := seal.CheckPublic(wire.Suite(suite), public)
		if r, sealErr := seal.Seal(wire.Suite(suite), c, stream.Hash{}, [][16]byte{{1}}, []byte("x")); (err != nil &&
			sealErr == nil) || (r == nil) == (sealErr == nil) {
			t.Errorf("check %v, seal %v", err, sealErr)
		}
	})
}

// FuzzOpen: no report of a peer panics, and none that was not sealed opens.
func FuzzOpen(f *testing.F) {
	k, c := attempt(f, wire.Suite_SUITE_X25519)
	r, err := seal.Seal(wire.Suite_SUITE_X25519, c, stream.Hash{}, [][16]byte{{1}}, []byte("counts"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(r.Ids[0], r.Encapsulated, r.Ciphertext)
	f.Fuzz(func(t *testing.T, id, enc, ciphertext []byte) {
		got, err := k.Open(c, &wire.Report{Version: 1, TaskHash: make([]byte, 32), Ids: [][]byte{id}, Encapsulated: enc,
			Ciphertext: ciphertext})
		if err == nil && string(got) != "counts" {
			t.Errorf("opened %q", got)
		}
	})
}

func BenchmarkSealOpen(b *testing.B) {
	for _, suite := range suites() {
		k, c := attempt(b, suite)
		plaintext := make([]byte, 1024)
		b.Run(suite.String()+"/Seal", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := seal.Seal(suite, c, stream.Hash{}, [][16]byte{{1}}, plaintext); err != nil {
					b.Fatal(err)
				}
			}
		})
		r, err := seal.Seal(suite, c, stream.Hash{}, [][16]byte{{1}}, plaintext)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(suite.String()+"/Open", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := k.Open(c, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
