// Package granttest has an issuer for tests, and tokens of people who are known by numbers. It signs under the key of
// docs/vectors/grants.json, so that no test looks for primes, and draws what people draw from their numbers.
package granttest

import (
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/grant"
)

// Key returns the private key of the vectors.
func Key(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	data, err := os.ReadFile(filepath.Join(filepath.Dir(file), "../../../docs/vectors/grants.json"))
	var of struct {
		Private string `json:"private_key"`
	}
	if err == nil {
		err = json.Unmarshal(data, &of)
	}
	if err != nil {
		t.Fatal(err)
	}
	der, err := hex.DecodeString(of.Private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		t.Fatal(err)
	}
	return key.(*rsa.PrivateKey)
}

// Signer returns the issuer's signer.
func Signer(t testing.TB) *grant.Signer {
	t.Helper()
	s, err := grant.NewSigner(Key(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// An Issuer gives people tokens of one task. Its methods may be called from any goroutine.
type Issuer struct {
	t      testing.TB
	signer *grant.Signer
	Tokens *grant.Task

	mu    sync.Mutex
	given map[uint64][]byte
}

// New returns the issuer of a task.
func New(t testing.TB, task stream.Hash) *Issuer {
	t.Helper()
	signer := Signer(t)
	of, err := grant.Of(signer.Public(), task)
	if err != nil {
		t.Fatal(err)
	}
	return &Issuer{t: t, signer: signer, Tokens: of, given: map[uint64][]byte{}}
}

// Token returns the token of a person, always the same.
func (i *Issuer) Token(person uint64) []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.given[person] == nil {
		i.given[person] = i.issue(person)
	}
	return i.given[person]
}

func (i *Issuer) issue(person uint64) []byte {
	seed := binary.BigEndian.AppendUint64([]byte("person"), person)
	b, err := i.Tokens.Blind(grant.Request{Nonce: sha256.Sum256(seed), Blind: sha256.Sum256(append(seed, 1))})
	if err != nil {
		i.t.Fatal(err)
	}
	blinded, err := grant.ParseRequest(b.Message(), grant.KeyID(i.signer.Public()))
	if err != nil {
		i.t.Fatal(err)
	}
	answer, err := i.signer.Sign(blinded)
	if err != nil {
		i.t.Fatal(err)
	}
	token, err := b.Finish(answer)
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}
