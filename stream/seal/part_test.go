package seal

import (
	"bytes"
	"errors"
	"testing"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestPartOpensInItsPlaceOnly: a part opens under exactly its key, manifest, attempt, shard, stage and worker.
func TestPartOpensInItsPlaceOnly(t *testing.T) {
	for _, of := range []wire.Suite{wire.Suite_SUITE_NONE, wire.Suite_SUITE_X25519, wire.Suite_SUITE_MLKEM768_X25519} {
		suite := PartSuite(of)
		key, err := NewRoundKey(suite)
		if err != nil {
			t.Fatal(err)
		}
		other, err := NewRoundKey(suite)
		if err != nil {
			t.Fatal(err)
		}
		c := Context{ManifestHash: stream.Hash{1}, Attempt: 2, Shard: 3, StageKey: make([]byte, stream.KeySize), Public: key.Public()}
		worker, plaintext := [stream.InstanceSize]byte{7}, []byte("totals of a shard")
		enc, sealed, err := SealPart(suite, c, worker, plaintext)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(sealed, plaintext[:4]) {
			t.Errorf("%v: a part in clear", of)
		}
		if got, err := key.OpenPart(c, worker, enc, sealed); err != nil || !bytes.Equal(got, plaintext) {
			t.Fatalf("%v: %q, %v", of, got, err)
		}
		for name, spoil := range map[string]func(*Context, *[stream.InstanceSize]byte, []byte){
			"manifest": func(c *Context, _ *[stream.InstanceSize]byte, _ []byte) { c.ManifestHash[0]++ },
			"attempt":  func(c *Context, _ *[stream.InstanceSize]byte, _ []byte) { c.Attempt++ },
			"shard":    func(c *Context, _ *[stream.InstanceSize]byte, _ []byte) { c.Shard++ },
			"stage": func(c *Context, _ *[stream.InstanceSize]byte, _ []byte) {
				c.StageKey = bytes.Repeat([]byte{1}, stream.KeySize)
			},
			"worker": func(_ *Context, i *[stream.InstanceSize]byte, _ []byte) { i[0]++ },
			"bytes":  func(_ *Context, _ *[stream.InstanceSize]byte, b []byte) { b[0] ^= 1 },
		} {
			c, worker, sealed := c, worker, bytes.Clone(sealed)
			spoil(&c, &worker, sealed)
			if _, err := key.OpenPart(c, worker, enc, sealed); !errors.Is(err, ErrOpenPart) {
				t.Errorf("%v, other %s: %v", of, name, err)
			}
		}
		c.Public = other.Public()
		if _, err := other.OpenPart(c, worker, enc, sealed); !errors.Is(err, ErrOpenPart) {
			t.Errorf("%v, other key: %v", of, err)
		}
		c.Public = key.Public()
		key.Erase()
		if _, err := key.OpenPart(c, worker, enc, sealed); !errors.Is(err, ErrErased) {
			t.Errorf("%v, erased: %v", of, err)
		}
	}
	none := Context{Attempt: 1, StageKey: make([]byte, stream.KeySize)}
	if _, _, err := SealPart(wire.Suite_SUITE_NONE, none, [stream.InstanceSize]byte{}, []byte("x")); err == nil {
		t.Error("a part in plaintext")
	}
}

// TestPartAndReportAreApart: the two uses of HPKE do not share an info.
func TestPartAndReportAreApart(t *testing.T) {
	c := Context{Attempt: 1, Shard: 2, StageKey: make([]byte, stream.KeySize), Public: []byte("key")}
	if bytes.Equal(c.Info(), c.partInfo()) || len(c.Info())-len(infoPrefix) != len(c.partInfo())-len(partPrefix) {
		t.Errorf("%x\n%x", c.Info(), c.partInfo())
	}
}
