package seal

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// VerifyRecord decodes a record of a task into m and returns its body: it has to verify under the pinned key of its
// writer (see [Verify]), belong to the subject that it is on, and carry the task's hash.
func VerifyRecord(record stream.Message, pinned ed25519.PublicKey, task stream.Hash, m proto.Message) (body []byte,
	err error) {
	body, err = Verify(record.Data, pinned, m)
	if err == nil {
		err = stream.CheckSubject(record.Subject, m)
	}
	var version *stream.VersionError
	switch {
	case errors.As(err, &version) && Enveloped(record.Data): // its writer did
		return nil, fmt.Errorf("%s: %w", record.Subject, err)
	case err != nil:
		return nil, fmt.Errorf("%s %w: %w", record.Subject, ErrNotWritten, err)
	}
	if of, ok := m.(interface{ GetTaskHash() []byte }); !ok || stream.Hash(of.GetTaskHash()) != task {
		return nil, fmt.Errorf("%s holds what its writer did not write for this task: it is of another task", record.Subject)
	}
	return body, nil
}

// Enveloped reports whether bytes decode as a signed message of this version; it verifies no signature. A version in
// the envelope is no word of a writer, because the signature is not over it.
func Enveloped(signed []byte) bool { return stream.Unmarshal(signed, new(wire.Signed)) == nil }

// ErrNotWritten means that a record is not what the holder of the pinned key wrote to its subject: the broker, or
// somebody with its rights, shows something else. It says nothing of what was written. What the holder of the key wrote
// there for another task is another error: waiting does not change it, and an operator has to see which streams these
// are.
var ErrNotWritten = errors.New("holds what its writer did not write for this task")
