package filestore

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/panlearn/panlearn/stream"
)

// A keyID names a key and its file: 16 random bytes, so that no two keys have one name.
type keyID [16]byte

const keySuffix = ".key"

func (id keyID) file() string { return hex.EncodeToString(id[:]) + keySuffix }

// A roundKey encrypts the charged events of one round, as long as one of them is charged. Its file:
//
//	"panlearn", version (1 byte), key (32 bytes), CRC-32C of these (4 bytes)
//
// Only the process that drew it encrypts with it, and counts its nonces up: none ever comes twice, whatever of the log
// is lost.
type roundKey struct {
	id     keyID
	round  stream.Round // of the process that drew it; else 0: it is for reading alone
	nonce  uint64       // the last that was used
	key    [32]byte
	events int // that are charged under it
}

const keyFileSize = len(magic) + 1 + 32 + 4

// newRoundKey draws a key and stores it, durably.
func newRoundKey(in folder, round stream.Round) (*roundKey, error) {
	k := &roundKey{round: round}
	_, _ = rand.Read(k.id[:]) // never fails: it ends the process instead
	_, _ = rand.Read(k.key[:])
	f, err := in.Create(k.id.file())
	if err != nil {
		return nil, err
	}
	data := k.marshal()
	defer clear(data)
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return k, in.Sync()
}

func (k *roundKey) marshal() []byte {
	b := make([]byte, 0, keyFileSize)
	b = append(append(b, magic...), formatVersion)
	b = append(b, k.key[:]...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// readRoundKey reads the key of a file; found is false where it holds none: it is torn, or erased.
func readRoundKey(in folder, id keyID) (k *roundKey, found bool, err error) {
	f, err := in.Open(id.file())
	if err != nil {
		return nil, false, err
	}
	data := make([]byte, keyFileSize+1)
	defer clear(data)
	n, err := f.ReadAt(data, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, false, err
	}
	k = &roundKey{id: id}
	if n == keyFileSize {
		copy(k.key[:], data[len(magic)+1:])
	}
	again := k.marshal()
	defer clear(again)
	return k, n == keyFileSize && string(again) == string(data[:n]), nil
}

// erase overwrites the file with zeros and removes it, durably, and forgets the key.
func (k *roundKey) erase(in folder) error {
	clear(k.key[:])
	return eraseKey(in, k.id)
}

func eraseKey(in folder, id keyID) error {
	f, err := in.Open(id.file())
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, keyFileSize), 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := in.Remove(id.file()); err != nil {
		return err
	}
	return in.Sync()
}

// keyIDs returns the ids of the key files among names.
func keyIDs(names []string) (ids []keyID) {
	for _, name := range names {
		base, found := strings.CutSuffix(name, keySuffix)
		if b, err := hex.DecodeString(base); found && err == nil && len(b) == len(keyID{}) && keyID(b).file() == name {
			ids = append(ids, keyID(b))
		}
	}
	return ids
}

func (k *roundKey) cipher() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// sealOverhead is the number of bytes that seal adds to the plaintext.
const sealOverhead = 16

// next returns the nonce of the next seal.
func (k *roundKey) next() uint64 {
	k.nonce++
	return k.nonce
}

// seal encrypts b[at:] in place, bound to the bytes before it in b.
func (k *roundKey) seal(b []byte, at int, nonce uint64) ([]byte, error) {
	c, err := k.cipher()
	if err != nil {
		return nil, err
	}
	return c.Seal(b[:at], nonceOf(nonce), b[at:], b[:at]), nil
}

// open decrypts what seal encrypted, in place.
func (k *roundKey) open(sealed, before []byte, nonce uint64) ([]byte, error) {
	c, err := k.cipher()
	if err != nil {
		return nil, err
	}
	plain, err := c.Open(sealed[:0], nonceOf(nonce), sealed, before)
	if err != nil {
		return nil, fmt.Errorf("%w: charged events do not decrypt", errDamaged)
	}
	return plain, nil
}

func nonceOf(n uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 4, 12), n) }
