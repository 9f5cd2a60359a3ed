package issuer

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/test/granttest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/grant"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A desk is an issuer in a folder, with the key of the vectors.
type desk struct {
	t       testing.TB
	dir     string
	keyPath string
	key     *Key
	list    *List
	server  *httptest.Server
	tokens  *grant.Task
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	key, err := newKey("churn", granttest.Key(t))
	must(t, err)
	d := &desk{t: t, dir: filepath.Join(t.TempDir(), "list"), keyPath: filepath.Join(t.TempDir(), "key"), key: key}
	d.tokens, err = grant.Of(key.Signer.Public(), stream.Hash{1})
	must(t, err)
	must(t, writeMark(d.keyPath, 0))
	must(t, d.start())
	t.Cleanup(d.stop)
	return d
}

func (d *desk) start() error {
	list, err := OpenList(d.dir, d.keyPath, d.key)
	if err != nil {
		return err
	}
	d.list = list
	gateways, err := httpaccess.Token("a-token-of-the-gateway")
	must(d.t, err)
	h, err := NewHandler(Config{Key: d.key, List: list, Login: HeaderLogin("X-Person"), Proxy: new(httpaccess.Access),
		Gateways: &gateways, Origins: []string{"https://app.example"}})
	must(d.t, err)
	d.server = httptest.NewServer(h)
	return nil
}

func (d *desk) stop() {
	if d.server != nil {
		d.server.Close()
		_ = d.list.Close()
		d.server = nil
	}
}

func (d *desk) blind() *grant.Blinded {
	b, err := d.tokens.Blind(grant.NewRequest())
	must(d.t, err)
	return b
}

// ask posts a message for a person, and returns status and body.
func (d *desk) ask(person string, body []byte, change ...func(*http.Request)) (int, []byte) {
	d.t.Helper()
	r, err := http.NewRequest("POST", d.server.URL+"/v1/tasks/churn/grant", bytes.NewReader(body))
	must(d.t, err)
	r.Header.Set("Content-Type", requestType)
	if person != "" {
		r.Header.Set("X-Person", person)
	}
	for _, c := range change {
		c(r)
	}
	return d.do(r)
}

func (d *desk) do(r *http.Request) (int, []byte) {
	d.t.Helper()
	a, err := http.DefaultClient.Do(r)
	must(d.t, err)
	defer a.Body.Close()
	out, err := io.ReadAll(a.Body)
	must(d.t, err)
	return a.StatusCode, out
}

// TestOneTokenAPerson: the same message gets the same signature again, also after a restart; another one of the person is
// refused, whatever is lost on the way; another person gets one of the same message.
func TestOneTokenAPerson(t *testing.T) {
	d := newDesk(t)
	b, other := d.blind(), d.blind()
	status, first := d.ask("ann", b.Message()) // and the answer is lost
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, first)
	}
	for range 2 {
		if status, again := d.ask("ann", b.Message()); status != http.StatusOK || !bytes.Equal(first, again) {
			t.Errorf("the same message again: %d", status)
		}
		if status, _ := d.ask("ann", other.Message()); status != http.StatusConflict {
			t.Errorf("another message of the person: %d, want 409", status)
		}
		d.stop()
		must(t, d.start())
	}
	if _, err := b.Finish(first); err != nil {
		t.Error(err)
	}
	if status, _ := d.ask("bob", other.Message()); status != http.StatusOK || d.list.Len() != 2 {
		t.Errorf("another person: %d; %d people", status, d.list.Len())
	}
}

// TestListLost: an issuer whose list is gone, an older copy, damaged, or of another key does not start, and one whose mark is
// gone neither; a crash between list and mark, or in the middle of an entry, loses nothing that was answered.
func TestListLost(t *testing.T) {
	d := newDesk(t)
	path := filepath.Join(d.dir, listName)
	copyOf := func(path string) []byte { data, err := os.ReadFile(path); must(t, err); return data }
	b := d.blind()
	status, first := d.ask("ann", b.Message())
	one := copyOf(path)
	if again, _ := d.ask("bob", d.blind().Message()); status != 200 || again != 200 {
		t.Fatal(status, again)
	}
	d.stop()
	two, mark := copyOf(path), copyOf(d.keyPath+markSuffix)
	flipped := bytes.Clone(two)
	flipped[len(one)-10] ^= 1
	foreign := bytes.Clone(two)
	foreign[len(listMagic)] ^= 1
	for name, lost := range map[string]func(){
		"gone":             func() { must(t, os.Remove(path)) },
		"older":            func() { must(t, os.WriteFile(path, one, 0o600)) },
		"cut":              func() { must(t, os.WriteFile(path, two[:len(two)-1], 0o600)) },
		"damaged":          func() { must(t, os.WriteFile(path, flipped, 0o600)) },
		"of another key":   func() { must(t, os.WriteFile(path, foreign, 0o600)) },
		"without its mark": func() { must(t, os.Remove(d.keyPath+markSuffix)) },
		"a damaged mark":   func() { must(t, os.WriteFile(d.keyPath+markSuffix, []byte("x"), 0o600)) },
	} {
		lost()
		if err := d.start(); !errors.Is(err, ErrList) {
			t.Errorf("%s: %v", name, err)
			d.stop()
		}
		must(t, os.WriteFile(path, two, 0o600))
		must(t, os.WriteFile(d.keyPath+markSuffix, mark, 0o600))
	}
	// It died after the list and before the mark, and in the middle of a third entry.
	must(t, os.WriteFile(path, append(bytes.Clone(two), two[len(one):len(two)-5]...), 0o600))
	must(t, os.WriteFile(d.keyPath+markSuffix, []byte("1\n"), 0o600))
	must(t, d.start())
	if status, again := d.ask("ann", b.Message()); status != 200 || !bytes.Equal(first, again) || d.list.Len() != 2 {
		t.Errorf("after a crash: %d, %d people", status, d.list.Len())
	}
	if status, _ := d.ask("carl", d.blind().Message()); status != 200 || string(copyOf(d.keyPath+markSuffix)) != "3\n" {
		t.Errorf("a third person: %d, mark %q", status, copyOf(d.keyPath+markSuffix))
	}
}

// TestListCannotBeWritten: what could not be synced is not answered, and nothing is after it.
func TestListCannotBeWritten(t *testing.T) {
	d := newDesk(t)
	must(t, d.list.file.Close())
	for range 2 {
		if status, _ := d.ask("ann", d.blind().Message()); status != http.StatusServiceUnavailable {
			t.Errorf("status %d", status)
		}
	}
	if d.list.Err() == nil {
		t.Error("the list says that it is well")
	}
}

// TestManyAtOnce: requests of many people that come together are each answered once it is their turn, and of one person's two
// messages one wins.
func TestManyAtOnce(t *testing.T) {
	d := newDesk(t)
	var group sync.WaitGroup
	var mu sync.Mutex
	won := map[string]int{}
	for i := range 40 {
		person := string(rune('a' + i/2))
		message := d.blind().Message()
		group.Go(func() {
			blinded, err := grant.ParseRequest(message, grant.KeyID(d.key.Signer.Public()))
			if err == nil {
				_, err = d.list.take(person, blinded)
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won[person]++
			} else if !errors.Is(err, errOther) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for person, n := range won {
		if n != 1 {
			t.Errorf("%s has %d", person, n)
		}
	}
	d.stop()
	must(t, d.start())
	if len(won) != 20 || d.list.Len() != 20 {
		t.Errorf("%d people won, %d are known", len(won), d.list.Len())
	}
}

// TestWhoMayAsk: nobody without a login, a page that is not listed, another content type, another machine's name, or with a
// body that is no request.
func TestWhoMayAsk(t *testing.T) {
	d := newDesk(t)
	message := d.blind().Message()
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	above := append(bytes.Clone(message[:3]), bytes.Repeat([]byte{0xff}, grant.SignatureSize)...)
	otherKey := bytes.Clone(message)
	otherKey[2] ^= 1
	for name, c := range map[string]struct {
		person string
		body   []byte
		change func(*http.Request)
		want   int
	}{
		"nobody":            {"", message, nil, 401},
		"two people":        {"ann", message, func(r *http.Request) { r.Header.Add("X-Person", "bob") }, 401},
		"a foreign page":    {"ann", message, header("Origin", "https://evil.example"), 403},
		"a form":            {"ann", message, header("Content-Type", "text/plain"), 415},
		"another name":      {"ann", message, func(r *http.Request) { r.Host = "evil.example" }, 403},
		"short":             {"ann", message[:100], nil, 422},
		"long":              {"ann", append(bytes.Clone(message), 0), nil, 400},
		"another key":       {"ann", otherKey, nil, 422},
		"above the modulus": {"ann", above, nil, 422},
	} {
		change := c.change
		if change == nil {
			change = func(*http.Request) {}
		}
		if status, body := d.ask(c.person, c.body, change); status != c.want {
			t.Errorf("%s: %d %s, want %d", name, status, body, c.want)
		}
	}
	if d.list.Len() != 0 {
		t.Error("who was refused is noted")
	}
	if status, _ := d.ask("ann", message, header("Origin", "https://app.example")); status != 200 {
		t.Errorf("a listed page: %d", status)
	}
}

// TestGateway: a gateway has its users' tokens signed, each for itself.
func TestGateway(t *testing.T) {
	d := newDesk(t)
	a, b, c := d.blind(), d.blind(), d.blind()
	body, err := json.Marshal(batchBody{Requests: []batchRequest{{"ann", a.Message()}, {"bob", b.Message()},
		{"", c.Message()}, {"carl", []byte("no")}}})
	must(t, err)
	post := func(token string) (int, []byte) {
		r, err := http.NewRequest("POST", d.server.URL+"/v1/tasks/churn/grants", bytes.NewReader(body))
		must(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		return d.do(r)
	}
	if status, _ := post("a-token-of-somebody"); status != 401 {
		t.Errorf("another token: %d", status)
	}
	status, text := post("a-token-of-the-gateway")
	var out batchAnswers
	must(t, json.Unmarshal(text, &out))
	if status != 200 || len(out.Answers) != 4 || out.Answers[2].Status != 400 || out.Answers[3].Status != 422 {
		t.Fatalf("%d %s", status, text)
	}
	for i, b := range []*grant.Blinded{a, b} {
		if _, err := b.Finish(out.Answers[i].Response); err != nil {
			t.Error(err)
		}
	}
	if status, _ := d.ask("bob", c.Message()); status != 409 {
		t.Errorf("a second token of a gateway's user: %d", status)
	}
}

// TestJWT: the person is the subject of a token that the login signed for this service and this hour.
func TestJWT(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	must(t, err)
	der, err := x509.MarshalPKIXPublicKey(public)
	must(t, err)
	path := filepath.Join(t.TempDir(), "login.pem")
	must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600))
	login, err := JWTLogin(JWTConfig{KeyFile: path, Issuer: "https://login.example", Audience: "grants"})
	must(t, err)
	_, stranger, err := ed25519.GenerateKey(nil)
	must(t, err)
	good := jwt.RegisteredClaims{Issuer: "https://login.example", Audience: jwt.ClaimStrings{"grants"}, Subject: "ann",
		ExpiresAt: jwt.NewNumericDate(time.Now().Add(time.Hour))}
	for name, c := range map[string]struct {
		change func(*jwt.RegisteredClaims)
		method jwt.SigningMethod
		key    any
		ok     bool
	}{
		"good":           {func(*jwt.RegisteredClaims) {}, jwt.SigningMethodEdDSA, private, true},
		"another key":    {func(*jwt.RegisteredClaims) {}, jwt.SigningMethodEdDSA, stranger, false},
		"none":           {func(*jwt.RegisteredClaims) {}, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, false},
		"a MAC":          {func(*jwt.RegisteredClaims) {}, jwt.SigningMethodHS256, []byte(public), false},
		"expired":        {func(c *jwt.RegisteredClaims) { c.ExpiresAt = jwt.NewNumericDate(time.Now().Add(-time.Hour)) }, jwt.SigningMethodEdDSA, private, false},
		"without an end": {func(c *jwt.RegisteredClaims) { c.ExpiresAt = nil }, jwt.SigningMethodEdDSA, private, false},
		"for another":    {func(c *jwt.RegisteredClaims) { c.Audience = jwt.ClaimStrings{"mail"} }, jwt.SigningMethodEdDSA, private, false},
		"of another":     {func(c *jwt.RegisteredClaims) { c.Issuer = "https://evil.example" }, jwt.SigningMethodEdDSA, private, false},
		"nobody":         {func(c *jwt.RegisteredClaims) { c.Subject = "" }, jwt.SigningMethodEdDSA, private, false},
	} {
		claims := good
		c.change(&claims)
		text, err := jwt.NewWithClaims(c.method, claims).SignedString(c.key)
		must(t, err)
		r := httptest.NewRequest("POST", "/", strings.NewReader(""))
		r.Header.Set("Authorization", "Bearer "+text)
		if person, err := login(r); (err == nil) != c.ok || c.ok && person != "ann" {
			t.Errorf("%s: %q, %v", name, person, err)
		}
	}
}

// TestKeyFiles: a key file names its task, is made once, and reads back. Nothing prints what is in a key.
func TestKeyFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "issuer.key")
	made, err := CreateKey(path, "churn")
	must(t, err)
	read, err := LoadKey(path)
	must(t, err)
	if read.Task != "churn" || !bytes.Equal(read.Signer.Public(), made.Signer.Public()) || !bytes.Equal(read.people, made.people) {
		t.Errorf("%v became %v", made, read)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x", "%q"} {
		if text := fmt.Sprintf(format+format, made, *made); text != strings.Repeat("issuer key of churn", 2) {
			t.Errorf("%s prints %s", format, text)
		}
	}
	if _, err := CreateKey(path, "churn"); err == nil {
		t.Error("a key is made over another")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	list, err := OpenList(filepath.Join(t.TempDir(), "list"), path, read)
	must(t, err)
	must(t, list.Close())
}
