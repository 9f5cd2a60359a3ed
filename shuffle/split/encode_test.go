package split

import (
	"bytes"
	"testing"
)

// codecs holds, for every message, a decoder that encodes again what it read.
var codecs = map[string]func([]byte) ([]byte, error){
	"attempt":  func(b []byte) ([]byte, error) { v, err := Decode[Attempt](b); return Append(nil, v), err },
	"request":  func(b []byte) ([]byte, error) { v, err := DecodeRequest(b); return v.Append(nil), err },
	"reply":    func(b []byte) ([]byte, error) { v, err := DecodeReply(b); return v.Append(nil), err },
	"ping":     func(b []byte) ([]byte, error) { v, err := Decode[Ping](b); return Append(nil, v), err },
	"pong":     func(b []byte) ([]byte, error) { v, err := Decode[Pong](b); return Append(nil, v), err },
	"finish":   func(b []byte) ([]byte, error) { v, err := Decode[Finish](b); return Append(nil, v), err },
	"gone":     func(b []byte) ([]byte, error) { v, err := Decode[Gone](b); return Append(nil, v), err },
	"differs":  func(b []byte) ([]byte, error) { v, err := Decode[Differs](b); return Append(nil, v), err },
	"prepared": func(b []byte) ([]byte, error) { v, err := DecodePrepared(b); return v.Append(nil), err },
}

// sampleAttempt returns an attempt whose fields all differ.
func sampleAttempt() Attempt {
	return Attempt{Task: Hash{1}, Round: 2, Number: 3, Open: Hash{4}, Join: Hash{5}}
}

// samples returns an encoding of every message, with all fields set.
func samples() map[string][]byte {
	x := sampleAttempt()
	users := []User{{ID: [16]byte{6}, Public: []byte{7, 8}, Prep: []byte{9}}, {ID: [16]byte{10}, Public: []byte{11}}}
	return map[string][]byte{
		"attempt": x.Append(nil),
		"request": Request{X: x, N: 7, Base: 5, Bundles: []Bundle{{Users: users, Sealed: []byte{1, 2, 3}}, {}}}.Append(nil),
		"reply": Reply{X: x, N: 7, Request: Hash{12}, Outcomes: []Outcome{Accepted, Refused, Accepted},
			Messages: []PrepMessage{{13}, {14}}, Chain: Hash{15}}.Append(nil),
		"ping":    Append(nil, Ping{X: x, Highest: 16}),
		"pong":    Append(nil, Pong{X: x, Instance: Instance{17}, Show: 18}),
		"finish":  Append(nil, Finish{X: x, Requests: 19, Users: 20, Chain: Hash{21}}),
		"gone":    Append(nil, Gone{X: x, Instance: Instance{22}, Marked: 23}),
		"differs": Append(nil, Differs{X: x, Instance: Instance{24}}),
		"prepared": Prepared{Finish: Finish{X: x, Requests: 29, Users: 30, Chain: Hash{31}},
			Note: Note{Cutoff: 32, Spent: [][16]byte{{33}, {34}}}, Rejects: Rejects{BadProof: 35},
			Aggregate: []byte{36}}.Append(nil),
	}
}

// Every message comes back from its encoding; no shorter one and no longer one is a message.
func TestMessagesComeBack(t *testing.T) {
	all := samples()
	if len(all) != len(codecs) {
		t.Fatalf("%d samples for %d messages", len(all), len(codecs))
	}
	for name, b := range all {
		got, err := codecs[name](b)
		if err != nil || !bytes.Equal(got, b) {
			t.Errorf("%s: %x comes back as %x, %v", name, b, got, err)
		}
		for n := range b {
			if _, err := codecs[name](b[:n]); err == nil {
				t.Errorf("%s: the first %d of %d bytes are read", name, n, len(b))
			}
		}
		if _, err := codecs[name](append(bytes.Clone(b), 0)); err == nil {
			t.Errorf("%s: a byte too many is read", name)
		}
	}
}

// TestMessagesWithoutMeaning: an outcome that does not exist is refused.
func TestMessagesWithoutMeaning(t *testing.T) {
	if got, err := DecodeReply(Reply{X: sampleAttempt(), Outcomes: []Outcome{outcomes}}.Append(nil)); err == nil {
		t.Errorf("unknown outcome: read as %v", got)
	}
}

// Every field of a request except Base moves its digest; every field of an attempt moves the first chain.
func TestDigestsBind(t *testing.T) {
	base, err := DecodeRequest(samples()["request"])
	if err != nil {
		t.Fatal(err)
	}
	seen := map[Hash]string{}
	add := func(what string, h Hash) {
		t.Helper()
		if other, ok := seen[h]; ok {
			t.Errorf("%s has the hash of %s", what, other)
		}
		seen[h] = what
	}
	change := func(what string, f func(*Request)) {
		r, err := DecodeRequest(samples()["request"])
		if err != nil {
			t.Fatal(err)
		}
		f(&r)
		add(what, r.digest())
	}
	change("the sample", func(*Request) {})
	change("task", func(r *Request) { r.X.Task[31]++ })
	change("round", func(r *Request) { r.X.Round++ })
	change("attempt", func(r *Request) { r.X.Number++ })
	change("open", func(r *Request) { r.X.Open[0]++ })
	change("join", func(r *Request) { r.X.Join[0]++ })
	change("number", func(r *Request) { r.N++ })
	change("id", func(r *Request) { r.Bundles[0].Users[1].ID[15]++ })
	change("public share", func(r *Request) { r.Bundles[0].Users[0].Public[1]++ })
	change("prep share", func(r *Request) { r.Bundles[0].Users[0].Prep[0]++ })
	change("ciphertext", func(r *Request) { r.Bundles[0].Sealed[2]++ })
	change("bytes moved between fields", func(r *Request) {
		r.Bundles[0].Users[0].Public, r.Bundles[0].Users[0].Prep = []byte{7}, []byte{8, 9}
	})
	change("one bundle fewer", func(r *Request) { r.Bundles = r.Bundles[:1] })
	change("users moved", func(r *Request) {
		r.Bundles[1].Users, r.Bundles[0].Users = r.Bundles[0].Users[1:], r.Bundles[0].Users[:1]
	})
	other := base
	other.Base++
	if base.digest() != other.digest() {
		t.Error("Base is in the digest: a request that is sent again would differ")
	}
	x := base.X
	add("the first chain", firstChain(x))
	x.Join[1]++
	add("the first chain of another Join", firstChain(x))
	for _, c := range []struct {
		what     string
		last     Hash
		outcomes []Outcome
	}{{"a link", Hash{1}, []Outcome{Accepted, BadProof}}, {"another last", Hash{2}, []Outcome{Accepted, BadProof}},
		{"other outcomes", Hash{1}, []Outcome{BadProof, Accepted}}, {"fewer outcomes", Hash{1}, []Outcome{Accepted}}} {
		add(c.what, nextChain(c.last, Hash{3}, c.outcomes))
	}
	add("another request", nextChain(Hash{1}, Hash{4}, []Outcome{Accepted, BadProof}))
	add("a verify key", VerifyKey{1}.Hash())
}

// What a ciphertext authenticates follows from all ids and all public shares, in order.
func TestAssociatedDataBinds(t *testing.T) {
	users := func(f func(u []User)) string {
		u := []User{{ID: [16]byte{1}, Public: []byte{2, 3}}, {ID: [16]byte{4}, Public: []byte{5}}}
		f(u)
		return string(AssociatedData(u))
	}
	same := users(func([]User) {})
	for what, other := range map[string]string{
		"an id":         users(func(u []User) { u[1].ID[3]++ }),
		"swapped ids":   users(func(u []User) { u[0].ID, u[1].ID = u[1].ID, u[0].ID }),
		"first public":  users(func(u []User) { u[0].Public[1]++ }),
		"second public": users(func(u []User) { u[1].Public[0]++ }),
		"moved bytes":   users(func(u []User) { u[0].Public, u[1].Public = []byte{2}, []byte{3, 5} }),
		"one user":      string(AssociatedData([]User{{ID: [16]byte{1}, Public: []byte{2, 3}}})),
	} {
		if other == same {
			t.Errorf("%s: the same associated data", what)
		}
	}
	if users(func(u []User) { u[0].Prep = []byte{9} }) != same {
		t.Error("the leader's prep share is in what the device sealed")
	}
}

// FuzzMessages: whatever is read as a message is its one encoding.
func FuzzMessages(f *testing.F) {
	for _, b := range samples() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, again := range codecs {
			if got, err := again(b); err == nil && !bytes.Equal(got, b) {
				t.Errorf("%s: %x is read, and encoded as %x", name, b, got)
			}
		}
	})
}
