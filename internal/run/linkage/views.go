package linkage

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/big"

	"github.com/panlearn/panlearn/stream/grant"
)

// A value is something that a party saw, or can compute of it.
type value struct {
	name  string
	bytes []byte
}

// A view holds what a party saw of each of some people, or of each of some reports.
type view struct {
	party string
	of    [][]value
}

// A pair holds what two views have in common.
type pair struct {
	One     string   `json:"one"`
	Other   string   `json:"other"`
	Links   int      `json:"links"`             // of one's people and the other's
	Because []string `json:"because,omitempty"` // the first links that were found
}

// Eight bytes in common are a link, or sixteen where all of them are letters of a text, as hexadecimal and base64 have:
// chance brings as many bits that are random together with a probability below 1e-6 where one view has a million
// windows and the other ten million.
const window, textWindow = 8, 16

// A mark represents a window.
type mark [textWindow + 1]byte

// told bounds how many links a pair names.
const told = 4

// spelled returns the forms of a value in which somebody may have put it: as it is, in hexadecimal and base64, and
// hashed.
func spelled(v []byte) [][]byte {
	two, three, five := sha256.Sum256(v), sha512.Sum384(v), sha512.Sum512(v)
	var out [][]byte
	for _, one := range [][]byte{v, two[:], three[:], five[:]} {
		small := hex.AppendEncode(nil, one)
		out = append(out, one, small, bytes.ToUpper(small))
		for before := range 3 { // bytes, behind which base64 spells the value otherwise
			text := base64.RawStdEncoding.AppendEncode(nil, append(make([]byte, before, before+len(one)), one...))
			out = append(out, text[(8*before+5)/6:])
		}
	}
	return out
}

// isLetter reports whether hexadecimal or base64 have a byte.
func isLetter(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '+' || b == '/' || b == '-' ||
		b == '_' || b == '='
}

// plain returns the letter that base64 has where its form for URLs has another one.
func plain(b byte) byte {
	switch b {
	case '-':
		return '+'
	case '_':
		return '/'
	}
	return b
}

// places calls take with each window of all forms of a value.
func places(v []byte, take func(mark)) {
	for _, form := range spelled(v) {
		letters := 0 // that end here
		for i, b := range form {
			if letters++; !isLetter(b) {
				letters = 0
			}
			var m mark
			switch {
			case letters >= textWindow:
				for k, letter := range form[i+1-textWindow : i+1] {
					m[1+k] = plain(letter)
				}
			case letters < window && i+1 >= window:
				m[0] = 1
				copy(m[1:], form[i+1-window:i+1])
			default:
				continue
			}
			take(m)
		}
	}
}

// An owner is the person of whom alone a party saw a window, or many.
type owner struct {
	person int
	name   string // of the value
}

const many = -1

// An index holds the owners of the windows of a view.
type index struct {
	party  string
	owners map[mark]owner
}

func indexOf(one view) index {
	owners := map[mark]owner{}
	for i, values := range one.of {
		for _, v := range values {
			places(v.bytes, func(w mark) {
				if had, ok := owners[w]; !ok {
					owners[w] = owner{i, v.name}
				} else if had.person != i {
					owners[w] = owner{person: many}
				}
			})
		}
	}
	return index{one.party, owners}
}

// common finds values in the views of two parties that at the first belong to one person alone.
func (one index) common(other view) pair {
	p := pair{One: one.party, Other: other.party}
	for j, values := range other.of {
		linked := map[int]bool{}
		for _, v := range values {
			places(v.bytes, func(w mark) {
				if o, ok := one.owners[w]; ok && o.person != many && !linked[o.person] {
					linked[o.person] = true
					p.add(o.person, o.name, j, v.name)
				}
			})
		}
	}
	return p
}

func (p *pair) add(i int, name string, j int, other string) {
	if p.Links++; p.Links <= told {
		p.Because = append(p.Because, fmt.Sprintf("%s of %s %d is in %s of %s %d", name, p.One, i+1, other, p.Other, j+1))
	}
}

// An asked holds what an issuer saw of one person's message.
type asked struct {
	person  string
	blinded []byte
}

// guesses are blinding factors that an issuer tries: numbers, and hashes of what it knows.
func guesses(a asked, task []byte) (all []*big.Int) {
	for r := int64(1); r <= 16; r++ {
		all = append(all, big.NewInt(r))
	}
	for _, known := range [][]byte{[]byte(a.person), task} {
		two, three := sha256.Sum256(known), sha512.Sum384(known)
		all = append(all, new(big.Int).SetBytes(two[:]), new(big.Int).SetBytes(three[:]))
	}
	return all
}

// unblinded returns what an issuer gets that takes its guesses off a message.
func unblinded(key *issuerKey, a asked, task []byte) (out []value) {
	z := new(big.Int).SetBytes(a.blinded)
	for _, r := range guesses(a, task) {
		r.Exp(r, key.e, key.n)
		if r.ModInverse(r, key.n) == nil {
			continue
		}
		out = append(out, value{"the message, less a blinding that can be guessed,", key.bytes(r.Mul(r, z))})
	}
	return out
}

// An issuerKey holds the public key under which messages are blinded.
type issuerKey struct{ n, e *big.Int }

func keyOf(spki []byte) (*issuerKey, error) {
	k, err := grant.ParseKey(spki)
	if err != nil {
		return nil, err
	}
	return &issuerKey{k.N, big.NewInt(int64(k.E))}, nil
}

// bytes returns a number modulo the key, SignatureSize bytes.
func (k *issuerKey) bytes(x *big.Int) []byte {
	return new(big.Int).Mod(x, k.n).FillBytes(make([]byte, grant.SignatureSize))
}

// signed returns what the signature of a token signs, as a number: the message as it was before it was blinded.
func (k *issuerKey) signed(token []byte) *big.Int {
	return new(big.Int).Exp(new(big.Int).SetBytes(token[grant.NonceSize:]), k.e, k.n)
}

// ratios returns the quotients of all pairs of numbers, and the pair of each.
func (k *issuerKey) ratios(all []*big.Int) map[string][2]int {
	out := map[string][2]int{}
	for i, x := range all {
		for j, y := range all {
			if inverse := new(big.Int).ModInverse(y, k.n); i != j && inverse != nil {
				out[string(k.bytes(inverse.Mul(inverse, x)))] = [2]int{i, j}
			}
		}
	}
	return out
}

// shared finds people with messages blinded by one factor: the quotient of two messages then equals the quotient of two
// tokens.
func shared(key *issuerKey, messages []asked, tokens [][]byte) pair {
	p := pair{One: "issuer, two people", Other: "stage, two tokens"}
	var blinded, signed []*big.Int
	for _, a := range messages {
		blinded = append(blinded, new(big.Int).SetBytes(a.blinded))
	}
	for _, t := range tokens {
		signed = append(signed, key.signed(t))
	}
	of := key.ratios(signed)
	for ratio, people := range key.ratios(blinded) {
		if two, ok := of[ratio]; ok {
			p.add(people[0], fmt.Sprintf("the blinding, which is that of %d,", people[1]+1), two[0], "the quotient")
		}
	}
	return p
}
