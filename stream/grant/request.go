package grant

import (
	"crypto/rand"
	"crypto/sha3"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cloudflare/circl/blindsign/blindrsa"
)

// A Request holds the draws for a token, which alone determine the message to the issuer. A Request and the issuer's
// answer give the token; a Request and the issuer's list reveal to whom it belongs.
type Request struct {
	Nonce [NonceSize]byte
	Blind [32]byte // seed of the salt and the blinding factor
}

// NewRequest draws a request. Store it before it is used.
func NewRequest() (r Request) {
	_, _ = rand.Read(r.Nonce[:]) // never fails
	_, _ = rand.Read(r.Blind[:])
	return r
}

// Format shows nothing of the request.
func (Request) Format(f fmt.State, _ rune) { fmt.Fprint(f, "grant.Request{redacted}") }

// MarshalText returns the placeholder of Format, for encoding/json.
func (r Request) MarshalText() ([]byte, error) { return fmt.Append(nil, r), nil }

// blinding is the customisation of the generator of salt and blinding factor.
const blinding = "panlearn grant blinding v1"

// RequestSize is the length of a message to the issuer, in bytes.
const RequestSize = 3 + SignatureSize

// A Blinded is a request on its way: what the issuer is sent, and what its answer is finished with.
type Blinded struct {
	task    *Task
	nonce   [NonceSize]byte
	state   blindrsa.State
	message []byte
}

// Blind makes the message to the issuer: always the same of one request.
func (t *Task) Blind(r Request) (*Blinded, error) {
	random := sha3.NewCSHAKE256(nil, []byte(blinding))
	_, _ = random.Write(r.Blind[:])
	message, state, err := t.client.Blind(random, t.Input(r.Nonce))
	if err != nil {
		return nil, fmt.Errorf("blind a token: %w", err)
	}
	return &Blinded{task: t, nonce: r.Nonce, state: state, message: message}, nil
}

// Message returns the TokenRequest of RFC 9578, section 6.1: the type, the last byte of the key id, and the blinded
// message.
func (b *Blinded) Message() []byte {
	id := KeyID(b.task.spki)
	out := binary.BigEndian.AppendUint16(make([]byte, 0, RequestSize), tokenType)
	return append(append(out, id[len(id)-1]), b.message...)
}

// Finish makes the token from the issuer's answer, Size bytes, and checks it: an issuer that answers under another key
// is refused.
func (b *Blinded) Finish(answer []byte) ([]byte, error) {
	signature, err := b.task.client.Finalize(b.state, answer)
	if err != nil {
		return nil, fmt.Errorf("an answer that the issuer of this task did not sign: %w", err)
	}
	token := append(append(make([]byte, 0, Size), b.nonce[:]...), signature...)
	if _, err := b.task.Verify(token); err != nil {
		return nil, err
	}
	return token, nil
}

var errRequest = errors.New("not a request for a token under this issuer's key")

// ParseRequest returns the blinded message of a message to the issuer with this key id.
func ParseRequest(message []byte, key [32]byte) (blinded []byte, err error) {
	if len(message) != RequestSize || binary.BigEndian.Uint16(message) != tokenType || message[2] != key[len(key)-1] {
		return nil, errRequest
	}
	return message[3:], nil
}
