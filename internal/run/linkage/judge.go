package linkage

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/panlearn/panlearn/stream/grant"
)

// judge compares what the parties saw.
func (s *scene) judge(ctx context.Context) (Report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, err := keyOf(s.key.Signer.Public())
	if err != nil {
		return Report{}, err
	}
	lists, err := s.lists(ctx)
	if err != nil {
		return Report{}, err
	}
	of, err := grant.Of(s.key.Signer.Public(), s.hash)
	if err != nil {
		return Report{}, err
	}
	var tokens [][]byte
	var messages []asked
	asker, front, carried, placed := view{party: "issuer"}, view{party: "relay"}, view{party: "broker"},
		view{party: "a request for a place"}
	spent, opened := view{party: "the lists at the broker"}, view{party: "stage"}
	for _, p := range s.people {
		token := p.kept.token
		h, err := of.Verify(token)
		if err != nil || !slices.Contains(lists, h) {
			return Report{}, errors.New("the stage did not count the token that a device has")
		}
		tokens = append(tokens, token)
		saw, err := atStage(of, key, token, h)
		if err != nil {
			return Report{}, err
		}
		opened.of = append(opened.of, saw)
		a := asked{person: p.name}
		saw = append(slices.Clone(p.atAsker), value{"the person", []byte(p.name)})
		for _, v := range p.atAsker {
			if v.name == "the message" && len(v.bytes) == grant.RequestSize {
				a.blinded = v.bytes[grant.RequestSize-grant.SignatureSize:]
				saw = append(saw, value{"the blinded message", a.blinded})
			}
		}
		if a.blinded == nil {
			return Report{}, errors.New("the issuer saw no request of somebody who has a token")
		}
		messages = append(messages, a)
		asker.of = append(asker.of, append(saw, unblinded(key, a, s.hash[:])...))
		p.atRelay.mu.Lock()
		front.of, placed.of = append(front.of, p.atRelay.seen), append(placed.of, p.atRelay.ask)
		p.atRelay.mu.Unlock()
	}
	for _, m := range s.messages {
		carried.of = append(carried.of, []value{{"a report", m}})
	}
	for _, h := range lists {
		spent.of = append(spent.of, []value{{"a hash", h[:]}})
	}
	if len(s.messages) < people || len(placed.of[0]) == 0 {
		return Report{}, fmt.Errorf("%d reports of %d people, %d requests for places", len(s.messages), people,
			len(placed.of[0]))
	}
	ofAsker, ofStage := indexOf(asker), indexOf(opened)
	r := Report{People: people, Pass: true, Pairs: []pair{ofAsker.common(front), ofAsker.common(carried),
		ofAsker.common(spent),
		ofAsker.common(opened), shared(key, messages, tokens), ofStage.common(front), ofStage.common(carried),
		indexOf(placed).common(carried)}}
	for _, p := range r.Pairs {
		r.Pass = r.Pass && p.Links == 0
	}
	return r, nil
}

// atStage returns what a stage sees of a person, or computes of it.
func atStage(of *grant.Task, key *issuerKey, token []byte, spent grant.Hash) ([]value, error) {
	saw := []value{{"the token", token}, {"what the token's signature signs", key.bytes(key.signed(token))},
		{"the hash in a list", spent[:]}}
	nonce := [grant.NonceSize]byte(token)
	for _, seed := range [][32]byte{nonce, sha256.Sum256(nonce[:]), sha256.Sum256(token), {}} {
		b, err := of.Blind(grant.Request{Nonce: nonce, Blind: seed})
		if err != nil {
			return nil, err
		}
		message := b.Message()
		saw = append(saw, value{"a message whose blinding can be guessed", message[len(message)-grant.SignatureSize:]})
	}
	return saw, nil
}

// lists returns the hashes of nonces that the stage put as counted in the round.
func (s *scene) lists(ctx context.Context) (all []grant.Hash, err error) {
	m, err := s.conn.Get(ctx, name.Spent(1, 1))
	if err != nil {
		return nil, err
	}
	const head = 32 + 8 + 8 // docs/reference/grants.md
	for b := m.Data[min(head, len(m.Data)):]; len(b) >= grant.HashSize; b = b[grant.HashSize:] {
		all = append(all, grant.Hash(b[:grant.HashSize]))
	}
	return all, nil
}
