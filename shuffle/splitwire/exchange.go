package splitwire

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// errVerb means that a message of the exchange is not of the kind that its reader can take.
var errVerb = errors.New("another message of the exchange")

// Sign returns the signed bytes of a message that is not sealed: a *split.Ping, Pong, Finish, Gone or Differs.
func Sign(id *seal.Identity, message any) ([]byte, error) {
	verb, x, plain := plainOf(message)
	if verb == wire.Verb_VERB_UNSPECIFIED {
		return nil, fmt.Errorf("sign %T: %w", message, errVerb)
	}
	m := exchangeOf(verb, x, 0)
	m.Plain = plain
	return id.Sign(m)
}

func plainOf(message any) (wire.Verb, split.Attempt, []byte) {
	switch m := message.(type) {
	case *split.Ping:
		return wire.Verb_VERB_PING, m.X, split.Append(nil, *m)
	case *split.Pong:
		return wire.Verb_VERB_PONG, m.X, split.Append(nil, *m)
	case *split.Finish:
		return wire.Verb_VERB_FINISH, m.X, split.Append(nil, *m)
	case *split.Gone:
		return wire.Verb_VERB_GONE, m.X, split.Append(nil, *m)
	case *split.Differs:
		return wire.Verb_VERB_DIFFERS, m.X, split.Append(nil, *m)
	}
	return wire.Verb_VERB_UNSPECIFIED, split.Attempt{}, nil
}

// Seal returns the signed bytes of a *split.Request or Reply, sealed to the receiver's key of the attempt.
func Seal(id *seal.Identity, suite wire.Suite, public []byte, message any) ([]byte, error) {
	var m *wire.Exchange
	var plain []byte
	switch message := message.(type) {
	case *split.Request:
		m, plain = exchangeOf(wire.Verb_VERB_REQUEST, message.X, message.N), message.Append(nil)
	case *split.Reply:
		m, plain = exchangeOf(wire.Verb_VERB_REPLY, message.X, message.N), message.Append(nil)
	default:
		return nil, fmt.Errorf("seal %T: %w", message, errVerb)
	}
	defer clear(plain)
	if err := seal.SealExchange(suite, public, m, plain); err != nil {
		return nil, err
	}
	return id.Sign(m)
}

func exchangeOf(verb wire.Verb, x split.Attempt, number uint64) *wire.Exchange {
	return &wire.Exchange{Version: stream.Version, Verb: verb, TaskHash: x.Task[:], Round: x.Round, Attempt: x.Number,
		OpenHash: x.Open[:], JoinHash: x.Join[:], Number: number}
}

// Verify returns a message of the exchange that the operator with a pinned key signed, and its attempt. What is sealed
// in it is not opened yet: the caller knows by the attempt which key that takes.
func Verify(signed []byte, from ed25519.PublicKey) (*wire.Exchange, split.Attempt, error) {
	var m wire.Exchange
	if _, err := seal.Verify(signed, from, &m); err != nil {
		return nil, split.Attempt{}, err
	}
	return &m, AttemptOf(&m), nil
}

// Open returns the message that a verified Exchange carries: a *split.Request or Reply, which the round key opens, or a
// *split.Ping, Pong, Finish, Gone or Differs, which needs none. Its attempt and number equal those of m in clear.
func Open(m *wire.Exchange, key *seal.RoundKey) (any, error) {
	x := AttemptOf(m)
	plain := m.Plain
	if m.Verb == wire.Verb_VERB_REQUEST || m.Verb == wire.Verb_VERB_REPLY {
		if key == nil {
			return nil, fmt.Errorf("open exchange: %w", seal.ErrErased)
		}
		var err error
		if plain, err = key.OpenExchange(m); err != nil {
			return nil, err
		}
	}
	message, at, number, err := decode(m.Verb, plain)
	switch {
	case err != nil:
		return nil, err
	case at != x || number != m.Number:
		return nil, errors.New("the message is of another attempt or number than the one in clear")
	}
	return message, nil
}

func decode(verb wire.Verb, plain []byte) (message any, x split.Attempt, number uint64, err error) {
	switch verb {
	case wire.Verb_VERB_REQUEST:
		m, err := split.DecodeRequest(plain)
		return &m, m.X, m.N, err
	case wire.Verb_VERB_REPLY:
		m, err := split.DecodeReply(plain)
		return &m, m.X, m.N, err
	case wire.Verb_VERB_PING:
		m, err := split.Decode[split.Ping](plain)
		return &m, m.X, 0, err
	case wire.Verb_VERB_PONG:
		m, err := split.Decode[split.Pong](plain)
		return &m, m.X, 0, err
	case wire.Verb_VERB_FINISH:
		m, err := split.Decode[split.Finish](plain)
		return &m, m.X, 0, err
	case wire.Verb_VERB_GONE:
		m, err := split.Decode[split.Gone](plain)
		return &m, m.X, 0, err
	case wire.Verb_VERB_DIFFERS:
		m, err := split.Decode[split.Differs](plain)
		return &m, m.X, 0, err
	}
	return nil, split.Attempt{}, 0, errVerb
}

// SignShare returns the signed bytes of the helper's Share: the record that it puts, and its answer to a finish.
func SignShare(id *seal.Identity, s split.Share) ([]byte, error) {
	m := &wire.Share{Version: stream.Version, TaskHash: s.X.Task[:], Round: s.X.Round, Attempt: s.X.Number,
		OpenHash: s.X.Open[:], JoinHash: s.X.Join[:], Requests: s.Requests, Users: s.Users, Chain: s.Chain[:],
		Aggregate: s.Aggregate}
	if s.Refusal != split.None {
		m.Refusal = s.Refusal.String()
	}
	return id.Sign(m)
}

// VerifyShare returns the Share that the helper with a pinned key signed.
func VerifyShare(signed []byte, helper ed25519.PublicKey) (split.Share, error) {
	var m wire.Share
	if _, err := seal.Verify(signed, helper, &m); err != nil {
		return split.Share{}, err
	}
	s := split.Share{X: AttemptOf(&m), Requests: m.Requests, Users: m.Users, Chain: split.Hash(m.Chain),
		Aggregate: m.Aggregate}
	if m.Refusal != "" {
		s.Refusal = split.Marked
		if m.Refusal != s.Refusal.String() {
			return split.Share{}, fmt.Errorf("share of round %d: refusal of another version of this program", m.Round)
		}
	}
	return s, nil
}

// IsShare reports whether an answer of the helper is a signed Share, and not an Exchange. It verifies nothing.
func IsShare(signed []byte) bool {
	var s wire.Signed
	return stream.Unmarshal(signed, &s) == nil && s.Kind == wire.Kind_KIND_SHARE
}
