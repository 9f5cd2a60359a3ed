package task

import "testing"

// TestMurmurVectors: the published values of MurmurHash3, and those of an implementation in another language.
func TestMurmurVectors(t *testing.T) {
	for _, c := range []struct {
		text string
		seed uint32
		want uint32
	}{
		{"", 0, 0},
		{"", 1, 0x514e28b7},
		{"hello", 0, 0x248bfa47},
		{"Hello World!", 42, 3565178}, // the documentation of sklearn.utils.murmurhash3_32
		{"The quick brown fox jumps over the lazy dog", 0x9747b28c, 0x2fa826cd},
	} {
		if got := murmur3(c.text, c.seed); got != c.want || murmur3([]byte(c.text), c.seed) != c.want {
			t.Errorf("%q with seed %d: %#x, want %#x", c.text, c.seed, got, c.want)
		}
	}
}

// TestHashedBuckets: the buckets are part of the task: clients in other languages must find the same.
func TestHashedBuckets(t *testing.T) {
	for _, c := range []struct {
		column, word string
		buckets      int
		want         float64
	}{
		{"url", "http://a", 64, 46},
		{"url", "", 1000, 819},
		{"город", " Москва ", 1 << 20, 1042892},
	} {
		in := input{Source: (&Column{Name: c.column, Kind: Hashed, Buckets: c.buckets}).source(), fields: []int{0}}
		if got, _, err := in.value([]string{c.word}); err != nil || got != c.want {
			t.Errorf("%s, %q: bucket %v of %d (%v), want %v", c.column, c.word, got, c.buckets, err, c.want)
		}
	}
	c := cross{inputs: []int{0, 1}, widths: []int{1, 1 << 20}, buckets: 16, seed: hashSeed("age", "job")}
	for position, want := range map[float64]int{0: 8, 1: 10, 7: 11, 123456: 5} {
		if got := c.at([]float64{0, position}); got != want {
			t.Errorf("combination %v: bucket %d, want %d", position, got, want)
		}
	}
}
