package grant

import (
	"bytes"
	crand "crypto/rand"
	"crypto/sha256"
	"crypto/sha3"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"testing"

	"github.com/panlearn/panlearn/internal/test/golden"
	"github.com/panlearn/panlearn/stream"
)

const vectorsFile = "../../docs/vectors/grants.json"

type hexed []byte

func (h hexed) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h)), nil }

func (h *hexed) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

// vectors are docs/vectors/grants.json: an issuance from the device's draws to the token, tokens that must be refused,
// the fields in a report, and the lists of two rounds.
type vectors struct {
	Private   hexed       `json:"private_key"`
	Public    hexed       `json:"issuer_key"`
	Plain     hexed       `json:"issuer_key_as_rsa_encryption"`
	KeyID     hexed       `json:"key_id"`
	Task      hexed       `json:"task_hash"`
	Challenge hexed       `json:"token_challenge"`
	Digest    hexed       `json:"challenge_digest"`
	Issued    []issued    `json:"issued"`
	Refused   []refused   `json:"must_refuse"`
	Report    inReport    `json:"report"`
	Chain     []roundList `json:"lists"`
}

type issued struct {
	Nonce    hexed `json:"nonce"`
	Salt     hexed `json:"salt"`
	Blind    hexed `json:"blind"`
	Inverse  hexed `json:"blind_inverse"`
	Input    hexed `json:"token_input"`
	Request  hexed `json:"request"`
	Response hexed `json:"response"`
	Token    hexed `json:"token"`
	Spent    hexed `json:"spent_hash"`
}

type refused struct {
	Name  string `json:"name"`
	Token hexed  `json:"token"`
}

type inReport struct {
	Counts    []hexed `json:"packed_counts"`
	Tokens    []hexed `json:"tokens"`
	Plaintext hexed   `json:"plaintext"`
}

type roundList struct {
	Round  uint64  `json:"round"`
	Step   uint64  `json:"step"`
	Before hexed   `json:"chain_before"`
	Spent  []hexed `json:"spent"`
	Lists  []hexed `json:"lists"`
	After  hexed   `json:"chain"`
}

// drawsOf returns the salt and the blinding factor that a request has, in the order in which circl reads them.
func drawsOf(t *testing.T, task *Task, r Request) (salt []byte, blind *big.Int) {
	t.Helper()
	random := sha3.NewCSHAKE256(nil, []byte(blinding))
	_, _ = random.Write(r.Blind[:])
	salt = make([]byte, 48)
	_, _ = random.Read(salt)
	blind, err := crand.Int(random, task.key.N)
	if err != nil {
		t.Fatal(err)
	}
	return salt, blind
}

// TestVectors compares docs/vectors/grants.json with what this package makes of its private key.
func TestVectors(t *testing.T) {
	s := signerOf(t)
	var old vectors
	data, err := os.ReadFile(vectorsFile)
	if err == nil {
		err = json.Unmarshal(data, &old)
	}
	if err != nil {
		t.Fatal(err)
	}
	hash := stream.HashOf([]byte("a task"))
	task := tokensOf(t, s.Public(), hash)
	plain, err := plainKey(s.Public())
	if err != nil {
		t.Fatal(err)
	}
	id, digest := KeyID(s.Public()), sha256.Sum256(challenge(hash))
	v := vectors{Private: old.Private, Public: s.Public(), Plain: plain, KeyID: id[:], Task: hash[:],
		Challenge: challenge(hash), Digest: digest[:]}
	for i := range byte(2) {
		r := Request{Nonce: sha256.Sum256([]byte{'n', i}), Blind: sha256.Sum256([]byte{'b', i})}
		salt, blind := drawsOf(t, task, r)
		b, err := task.Blind(r)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := s.Sign(b.message)
		if err != nil {
			t.Fatal(err)
		}
		token, err := b.Finish(answer)
		if err != nil {
			t.Fatal(err)
		}
		wide := func(n *big.Int) []byte { return n.FillBytes(make([]byte, SignatureSize)) }
		if again := unblinded(task.key.N, answer, blind); !bytes.Equal(again, token[NonceSize:]) {
			t.Errorf("the draws of request %d are others", i)
		}
		spent := task.Spent(r.Nonce)
		v.Issued = append(v.Issued, issued{Nonce: r.Nonce[:], Salt: salt, Blind: wide(blind),
			Inverse: wide(new(big.Int).ModInverse(blind, task.key.N)), Input: task.Input(r.Nonce), Request: b.Message(),
			Response: answer, Token: token, Spent: spent[:]})
	}
	v.Refused = refusedTokens(t, s, v)
	v.Report = inReport{Counts: []hexed{{0x21, 0x43, 0x05}, {0x10, 0x32, 0x04}},
		Tokens: []hexed{v.Issued[0].Token, v.Issued[1].Token}}
	for _, part := range append(append([]hexed{}, v.Report.Counts...), v.Report.Tokens...) {
		v.Report.Plaintext = append(v.Report.Plaintext, part...)
	}
	v.Chain = chainOf(t, task, hash)
	golden.JSON(t, vectorsFile, v, 0)
	for _, r := range v.Refused {
		if _, err := task.Verify(r.Token); err == nil {
			t.Errorf("%s: verifies", r.Name)
		}
	}
}

// unblinded takes the blinding factor off an issuer's answer: the signature is the answer times its inverse.
func unblinded(n *big.Int, answer []byte, blind *big.Int) []byte {
	z := new(big.Int).ModInverse(blind, n)
	return z.Mod(z.Mul(z, new(big.Int).SetBytes(answer)), n).FillBytes(make([]byte, SignatureSize))
}

func refusedTokens(t *testing.T, s *Signer, v vectors) []refused {
	t.Helper()
	other := tokensOf(t, s.Public(), stream.HashOf([]byte("another task")))
	b, err := other.Blind(Request{Nonce: [NonceSize]byte(v.Issued[0].Nonce), Blind: sha256.Sum256([]byte("b"))})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.Sign(b.message)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := b.Finish(answer)
	if err != nil {
		t.Fatal(err)
	}
	mixed := append(bytes.Clone(v.Issued[0].Token[:NonceSize]), v.Issued[1].Token[NonceSize:]...)
	above := bytes.Clone(v.Issued[0].Token)
	n := new(big.Int).SetBytes(v.Issued[0].Token[NonceSize:])
	if n.Add(n, other.key.N).BitLen() <= 8*SignatureSize {
		n.FillBytes(above[NonceSize:])
	} else {
		copy(above[NonceSize:], other.key.N.Bytes())
	}
	return []refused{
		{"of another task under the same key", foreign},
		{"another token's signature", mixed},
		{"a signature that is not below the modulus", above},
		{"no signature", append(bytes.Clone(v.Issued[0].Token[:NonceSize]), make([]byte, SignatureSize)...)},
		{"short", v.Issued[0].Token[:Size-1]},
	}
}

func chainOf(t *testing.T, task *Task, hash stream.Hash) (out []roundList) {
	t.Helper()
	before := First(hash)
	for round, spent := range [][]Hash{{{1}, {2, 3}}, {}} {
		r := roundList{Round: uint64(round + 2), Step: uint64(round + 1), Before: before[:]}
		for _, h := range spent {
			r.Spent = append(r.Spent, h[:])
		}
		for _, l := range Lists(before, stream.Step(r.Step), spent) {
			r.Lists = append(r.Lists, l)
		}
		after := Next(before, stream.Round(r.Round), stream.Step(r.Step), spent)
		r.After = after[:]
		out, before = append(out, r), after
	}
	return out
}
