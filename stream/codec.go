package stream

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream/wire"
)

// Version is the wire version of every message.
const Version = 1

// A Hash is a SHA-256.
type Hash = [sha256.Size]byte

// ErrNotCanonical means that bytes decode, but are not the canonical encoding of their message.
var ErrNotCanonical = errors.New("not the canonical encoding")

// A VersionError means that a message has another wire version.
type VersionError struct{ Got, Want uint32 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("wire version %d, this program speaks %d: use builds of one wire version, which their command version prints; "+
		"a task ends with the one that it began with (docs/how-to/upgrades.md)", e.Got, e.Want)
}

type versioned interface {
	proto.Message
	GetVersion() uint32
}

// Marshal encodes a message canonically: ascending fields, no unknown ones.
func Marshal(m proto.Message) ([]byte, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return data, nil
}

// Unmarshal decodes what Marshal wrote into m and checks it: bytes that Marshal would not write, another wire
// version, or a body that Check refuses are errors, after which m is not to be used. The message keeps no reference
// to data.
func Unmarshal(data []byte, m proto.Message) error {
	name := m.ProtoReflect().Descriptor().Name()
	// Unknown fields are dropped, so that what carries any encodes differently below.
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, m); err != nil {
		return fmt.Errorf("decode %s: malformed", name) // the library's text may quote the payload
	}
	if v, ok := m.(versioned); ok && v.GetVersion() != Version {
		return fmt.Errorf("decode %s: %w", name, &VersionError{Got: v.GetVersion(), Want: Version})
	}
	again, err := Marshal(m)
	if err != nil {
		return fmt.Errorf("decode %s: %w", name, err)
	}
	canonical := bytes.Equal(again, data)
	clear(again) // of a report nothing is to lie about beside the key that opens it
	if !canonical {
		return fmt.Errorf("decode %s: %w", name, ErrNotCanonical)
	}
	if err := Check(m); err != nil {
		return fmt.Errorf("decode %s: %w", name, err)
	}
	return nil
}

// HashOf returns the hash of canonical bytes: of a Task body the task hash, of a Round body the round manifest hash.
func HashOf(canonical []byte) Hash { return sha256.Sum256(canonical) }

// KindOf returns the kind under which a body is signed, or KIND_UNSPECIFIED for what is never signed.
func KindOf(m proto.Message) wire.Kind {
	switch m.(type) {
	case *wire.StageIdentity:
		return wire.Kind_KIND_STAGE
	case *wire.Task:
		return wire.Kind_KIND_TASK
	case *wire.Round:
		return wire.Kind_KIND_ROUND
	case *wire.Open:
		return wire.Kind_KIND_OPEN
	case *wire.Claim:
		return wire.Kind_KIND_CLAIM
	case *wire.Batch:
		return wire.Kind_KIND_BATCH
	case *wire.Close:
		return wire.Kind_KIND_CLOSE
	case *wire.End:
		return wire.Kind_KIND_END
	case *wire.HelperIdentity:
		return wire.Kind_KIND_HELPER
	case *wire.Join:
		return wire.Kind_KIND_JOIN
	case *wire.Share:
		return wire.Kind_KIND_SHARE
	case *wire.Exchange:
		return wire.Kind_KIND_EXCHANGE
	}
	return wire.Kind_KIND_UNSPECIFIED
}
