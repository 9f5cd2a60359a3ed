package grant

import (
	"bytes"
	"testing"

	"github.com/panlearn/panlearn/stream"
)

// FuzzList: what is read as a list is what is written of it.
func FuzzList(f *testing.F) {
	before := First(stream.Hash{1})
	f.Add(Lists(before, 1, nil)[0])
	f.Add(Lists(before, 7, []Hash{{1}, {2}})[0])
	f.Add([]byte("garbage"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := ParseList(data, 1)
		if err != nil || l.Spent > ListHashes {
			return
		}
		if again := Lists(l.Before, l.Step, l.Hashes); len(again) != 1 || !bytes.Equal(again[0], data) {
			t.Errorf("%x is read, and written as %x", data, again[0])
		}
	})
}

// FuzzToken: no bytes verify that the issuer did not sign, and none make the verifier panic.
func FuzzToken(f *testing.F) {
	task := tokensOf(f, signerOf(f).Public(), stream.Hash{1})
	f.Add([]byte{})
	f.Add(make([]byte, Size))
	f.Add(bytes.Repeat([]byte{0xff}, Size))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := task.Verify(data); err == nil {
			t.Errorf("%x verifies", data)
		}
	})
}
