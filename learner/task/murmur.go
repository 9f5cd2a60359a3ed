package task

import "math/bits"

// murmur3 is MurmurHash3 by Austin Appleby in its variant of 32 bits for x86, which sklearn.utils.murmurhash3_32 and the operator
// MurmurHash3 of ONNX Runtime compute as well. It spreads words over buckets and hides nothing: with a public seed anybody can
// find words that share a bucket, which costs accuracy and no privacy.
func murmur3[T string | []byte](data T, seed uint32) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	h := seed
	whole := len(data) &^ 3
	for i := 0; i < whole; i += 4 {
		k := uint32(data[i]) | uint32(data[i+1])<<8 | uint32(data[i+2])<<16 | uint32(data[i+3])<<24
		h ^= bits.RotateLeft32(k*c1, 15) * c2
		h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
	}
	var k uint32
	for i := len(data) - 1; i >= whole; i-- {
		k = k<<8 | uint32(data[i])
	}
	h ^= bits.RotateLeft32(k*c1, 15) * c2
	h ^= uint32(len(data))
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// hashSeed is the seed of a hashed column, or of a hashed cross of several: the hash of the names one after another, each seeded
// by the one before, from 0. So equal words in two columns share no bucket but by accident.
func hashSeed(names ...string) uint32 {
	var seed uint32
	for _, n := range names {
		seed = murmur3(n, seed)
	}
	return seed
}
