package linkage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/granttest"
	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/grants"
	"github.com/panlearn/panlearn/stream/grant"
)

// leaking is a device that sends its issuer more than the message.
type leaking struct {
	grants.Source
	tell func(asks []grants.Ask) string
}

func (l leaking) OnePerson() {}

func (l leaking) Sign(ctx context.Context, asks []grants.Ask) ([]grants.Answer, error) {
	login := l.Source.(grants.Login)
	authorize, said := login.Authorize, l.tell(asks)
	login.Authorize = func(r *http.Request) {
		authorize(r)
		r.Header.Set("X-Trace", said)
	}
	return login.Sign(ctx, asks)
}

// roundTripper makes requests.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// tracing returns a Config whose devices add a header to all that they send to the relay.
func tracing(of func(p *person) string) Config {
	return Config{round: func(p *person, by http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("X-Trace", of(p))
			return by.RoundTrip(r)
		})
	}}
}

// TestAudit: issuer, relay, broker and stage, as they run, have nothing in common that is of one person; a device that
// sends the same value to two of them turns that pair red.
func TestAudit(t *testing.T) {
	nonces := func(of grants.Source, store grants.Store) grants.Source {
		return leaking{of, func([]grants.Ask) string {
			kept := store.(*keeping)
			kept.mu.Lock()
			defer kept.mu.Unlock()
			return hex.EncodeToString(kept.drawn.Nonce[:])
		}}
	}
	cases := []struct {
		name   string
		config Config
		red    string // one and other of the pair; empty: none
	}{
		{"as it is", Config{}, ""},
		{"the nonce goes through the issuer", Config{source: nonces}, "issuer and stage"},
		{"the person's name at the relay", tracing(func(p *person) string { return p.name }), "issuer and relay"},
		{"a hash of the person's name at the relay", tracing(func(p *person) string {
			h := sha256.Sum256([]byte(p.name))
			return hex.EncodeToString(h[:12])
		}), "issuer and relay"},
		{"the token at the relay", tracing(func(p *person) string {
			p.kept.mu.Lock()
			defer p.kept.mu.Unlock()
			return base64.StdEncoding.EncodeToString(p.kept.token)
		}), "stage and relay"},
	}
	for _, c := range cases[:longtest.Seeds(t, len(cases))] {
		t.Run(c.name, func(t *testing.T) {
			r, err := Run(t.Context(), c.config)
			if err != nil {
				t.Fatal(err)
			}
			if r.Pass != (c.red == "") {
				t.Errorf("pass is %v", r.Pass)
			}
			for _, p := range r.Pairs {
				at := p.One + " and " + p.Other
				if (p.Links > 0) != (at == c.red) {
					t.Errorf("%s: %d links: %s", at, p.Links, strings.Join(p.Because, "; "))
				}
				if at == c.red && p.Links < people {
					t.Errorf("%s: %d links, want one for each of %d people", at, p.Links, people)
				}
			}
		})
	}
}

// TestSpellings: a value is a link in each of the forms of hexadecimal and base64 in which another party may have it,
// at any offset, and cut.
func TestSpellings(t *testing.T) {
	seen := sha256.Sum256([]byte("what the first party saw"))
	hashed := sha512.Sum512(seen[:])
	one := indexOf(view{of: [][]value{{{"it", seen[:]}}}})
	links := func(b []byte) int { return one.common(view{of: [][]value{{{"that", b}}}}).Links }
	for name, of := range map[string][]byte{"it": seen[:], "its hash": hashed[:], "the half of it": seen[8:24]} {
		for before := range 4 {
			text := append(make([]byte, before), of...)
			for how, spelled := range map[string][]byte{"as it is": text, "hexadecimal": hex.AppendEncode(nil, text),
				"hexadecimal in capitals": bytes.ToUpper(hex.AppendEncode(nil, text)),
				"base64":                  base64.StdEncoding.AppendEncode(nil, text),
				"base64 for URLs":         base64.URLEncoding.AppendEncode(nil, text),
				"base64 without padding":  base64.RawURLEncoding.AppendEncode(nil, text)} {
				if links(spelled) != 1 {
					t.Errorf("%s behind %d bytes, %s, is no link", name, before, how)
				}
			}
		}
	}
	other := sha256.Sum256([]byte("another value"))
	if links(other[:]) != 0 {
		t.Error("another value is a link")
	}
}

// signed returns what an issuer is asked to sign for a request, blinded, and the token that the device makes of its
// answer.
func signed(t *testing.T, of *grant.Task, signer *grant.Signer, request grant.Request) (blinded, token []byte) {
	t.Helper()
	b, err := of.Blind(request)
	if err != nil {
		t.Fatal(err)
	}
	blinded = b.Message()[grant.RequestSize-grant.SignatureSize:]
	answer, err := signer.Sign(blinded)
	if err == nil {
		token, err = b.Finish(answer)
	}
	if err != nil {
		t.Fatal(err)
	}
	return blinded, token
}

// TestBlindingOfTheNonce: a stage that can compute somebody's message is a link.
func TestBlindingOfTheNonce(t *testing.T) {
	signer := granttest.Signer(t)
	of, err := grant.Of(signer.Public(), stream.Hash{5})
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyOf(signer.Public())
	if err != nil {
		t.Fatal(err)
	}
	good := grant.NewRequest()
	hashed := sha256.Sum256(good.Nonce[:])
	for links, seeds := range [][][32]byte{{good.Blind}, {good.Nonce, hashed, {}}} {
		for i, seed := range seeds {
			blinded, token := signed(t, of, signer, grant.Request{Nonce: good.Nonce, Blind: seed})
			saw, err := atStage(of, key, token, grant.Hash{})
			if err != nil {
				t.Fatal(err)
			}
			if got := indexOf(view{of: [][]value{{{"the message",
				blinded}}}}).common(view{of: [][]value{saw}}).Links; got != links {
				t.Errorf("seed %d: %d links, want %d", i, got, links)
			}
		}
	}
}

// TestBadBlinding: messages that were not blinded, by a factor that can be guessed, or by one of two people are links
// of issuer and stage; a device's messages are none.
func TestBadBlinding(t *testing.T) {
	const people = 4
	signer := granttest.Signer(t)
	task := stream.Hash{5}
	of, err := grant.Of(signer.Public(), task)
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyOf(signer.Public())
	if err != nil {
		t.Fatal(err)
	}
	var tokens [][]byte
	var good []asked
	for i := range people {
		blinded, token := signed(t, of, signer, grant.NewRequest())
		tokens, good = append(tokens, token), append(good, asked{"person-" + string(rune('a'+i)), blinded})
	}
	by := func(factor func(i int) *big.Int) []asked {
		out := make([]asked, people)
		for i, a := range good {
			r := factor(i)
			r.Exp(r, key.e, key.n)
			out[i] = asked{a.person, key.bytes(r.Mul(r, key.signed(tokens[i])))}
		}
		return out
	}
	one := new(big.Int).SetBytes(tokens[0][:40])
	for name, c := range map[string]struct {
		messages []asked
		links    bool
	}{
		"of devices":           {good, false},
		"not blinded":          {by(func(int) *big.Int { return big.NewInt(1) }), true},
		"by a small number":    {by(func(i int) *big.Int { return big.NewInt(int64(3 + i)) }), true},
		"by the person's name": {by(func(i int) *big.Int { h := sha256.Sum256([]byte(good[i].person)); return new(big.Int).SetBytes(h[:]) }), true},
		"by one for all":       {by(func(int) *big.Int { return new(big.Int).Set(one) }), true},
	} {
		asker, opened := view{party: "issuer"}, view{party: "stage"}
		for i, a := range c.messages {
			asker.of = append(asker.of, append(unblinded(key, a, task[:]), value{"the blinded message", a.blinded}))
			opened.of = append(opened.of, []value{{"the token", tokens[i]}, {"what it signs", key.bytes(key.signed(tokens[i]))}})
		}
		found := indexOf(asker).common(opened).Links + shared(key, c.messages, tokens).Links
		if (found > 0) != c.links || c.links && found < people {
			t.Errorf("%s: %d links", name, found)
		}
	}
}
