package seal

import (
	"bytes"
	"crypto/hpke"
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// partPrefix separates a part's HPKE context from a report's.
const partPrefix = "panlearn/v1/part\x00"

// PartSuite is the suite under which parts are sealed for a task of a suite: its own, but X25519 where reports are
// plaintext. Partial totals are never in clear.
func PartSuite(suite wire.Suite) wire.Suite {
	if suite == wire.Suite_SUITE_NONE {
		return wire.Suite_SUITE_X25519
	}
	return suite
}

// partInfo is that of a report's context, under another prefix. Context.Public is the owner's handover key.
func (c Context) partInfo() []byte {
	return append([]byte(partPrefix), bytes.TrimPrefix(c.Info(), []byte(infoPrefix))...)
}

// SealPart seals a worker's plaintext to the handover key that c names, for an attempt and a shard, from the worker's
// instance. suite is the key's: that of PartSuite.
func SealPart(suite wire.Suite, c Context, instance [stream.InstanceSize]byte, plaintext []byte) (enc, ciphertext []byte, err error) {
	if err := c.check(); err != nil {
		return nil, nil, fmt.Errorf("seal part: %w", err)
	}
	public, err := publicKey(suite, c.Public)
	if err == nil && public == nil {
		err = errors.New("a part is always encrypted")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("seal part: %w", err)
	}
	enc, sender, err := hpke.NewSender(public, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), c.partInfo())
	if err != nil {
		return nil, nil, fmt.Errorf("seal part: %w", err)
	}
	if ciphertext, err = sender.Seal(instance[:], plaintext); err != nil {
		return nil, nil, fmt.Errorf("seal part: %w", err)
	}
	return enc, ciphertext, nil
}

// OpenPart answers the plaintext of a part that was sealed to this key under this context and instance. It is the
// caller's to overwrite.
func (k *RoundKey) OpenPart(c Context, instance [stream.InstanceSize]byte, enc, ciphertext []byte) ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("open part: %w", err)
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	switch {
	case k.erased:
		return nil, fmt.Errorf("open part: %w", ErrErased)
	case k.private == nil || !bytes.Equal(c.Public, k.public):
		return nil, errors.New("open part: the context names another key")
	}
	recipient, err := hpke.NewRecipient(enc, k.private, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), c.partInfo())
	if err != nil {
		return nil, fmt.Errorf("open part: %w", ErrOpenPart)
	}
	plaintext, err := recipient.Open(instance[:], ciphertext)
	if err != nil {
		return nil, fmt.Errorf("open part: %w", ErrOpenPart)
	}
	return plaintext, nil
}

// ErrOpenPart says that a part was not sealed to this key, context and worker, or was changed on its way.
var ErrOpenPart = errors.New("the part does not open")
