package stream

import (
	"bytes"
	"testing"
	"time"
)

func FuzzLease(f *testing.F) {
	f.Add(Lease{Instance: [InstanceSize]byte{7}, TTL: 10 * time.Second, Newest: 1 << 40}.Record())
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := ParseLease(data)
		if err == nil && !bytes.Equal(l.Record(), data) {
			t.Errorf("%x became %+v and then %x", data, l, l.Record())
		}
	})
}
