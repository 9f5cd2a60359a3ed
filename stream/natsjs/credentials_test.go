package natsjs_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// An operated is a server in operator mode: it knows its operator's key alone, and users by the JWTs that their
// account signed.
type operated struct {
	t        *testing.T
	server   *server.Server
	operator nkeys.KeyPair
	account  *jwt.AccountClaims
}

func keyPair(t *testing.T, create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
	t.Helper()
	pair, err := create()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return pair, public
}

// scope returns the scope of a signing key: it may vouch for users who get answers on the inbox that bears their
// public key, and nowhere else.
func scope(signer string) *jwt.UserScope {
	s := jwt.NewUserScope()
	s.Key = signer
	s.Template.Sub.Allow.Add("panlearn.>", natsjs.PlainInbox+"_{{subject()}}.>")
	return s
}

// operate starts such a server, with one account whose users have these signing keys.
func operate(t *testing.T, signers ...string) *operated {
	t.Helper()
	o := &operated{t: t}
	var public string
	o.operator, public = keyPair(t, nkeys.CreateOperator)
	operator := jwt.NewOperatorClaims(public)
	_, system := keyPair(t, nkeys.CreateAccount)
	operator.SystemAccount = system
	token, err := operator.Encode(o.operator)
	if err != nil {
		t.Fatal(err)
	}
	if operator, err = jwt.DecodeOperatorClaims(token); err != nil {
		t.Fatal(err)
	}
	_, public = keyPair(t, nkeys.CreateAccount)
	o.account = jwt.NewAccountClaims(public)
	o.account.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	for _, signer := range signers {
		o.account.SigningKeys.AddScopedSigner(scope(signer))
	}
	resolver := &server.MemAccResolver{}
	for name, claims := range map[string]*jwt.AccountClaims{system: jwt.NewAccountClaims(system), public: o.account} {
		token, err := claims.Encode(o.operator)
		if err == nil {
			err = resolver.Store(name, token)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	o.server, err = server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true,
		NoLog: true, JetStream: true,
		StoreDir: t.TempDir(), TrustedOperators: []*jwt.OperatorClaims{operator}, SystemAccount: system,
		AccountResolver: resolver})
	if err != nil {
		t.Fatal(err)
	}
	o.server.Start()
	t.Cleanup(func() {
		o.server.Shutdown()
		o.server.WaitForShutdown()
	})
	if !o.server.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not listen")
	}
	return o
}

// sign writes the credentials of a user, of whom this key of the account vouches, as a renewal does: the file is
// replaced whole.
func (o *operated) sign(user, signer nkeys.KeyPair, path string) (token string) {
	o.t.Helper()
	public, err := user.PublicKey()
	if err != nil {
		o.t.Fatal(err)
	}
	claims := jwt.NewUserClaims(public)
	claims.IssuerAccount = o.account.Subject
	claims.SetScoped(true)
	if token, err = claims.Encode(signer); err != nil {
		o.t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		o.t.Fatal(err)
	}
	file, err := jwt.FormatUserConfig(token, seed)
	if err == nil {
		err = os.WriteFile(path+".new", file, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		o.t.Fatal(err)
	}
	return token
}

// only has the account vouch by this key alone, and ends all connections.
func (o *operated) only(signer string) {
	o.t.Helper()
	o.account.SigningKeys = jwt.SigningKeys{}
	o.account.SigningKeys.AddScopedSigner(scope(signer))
	token, err := o.account.Encode(o.operator)
	if err == nil {
		err = o.server.AccountResolver().Store(o.account.Subject, token)
	}
	if err != nil {
		o.t.Fatal(err)
	}
	account, err := o.server.LookupAccount(o.account.Subject)
	if err != nil {
		o.t.Fatal(err)
	}
	o.server.UpdateAccountClaims(account, o.account)
	for _, c := range o.connections() {
		_ = o.server.DisconnectClientByID(c.Cid) // it may be gone already
	}
}

func (o *operated) connections() []*server.ConnInfo {
	o.t.Helper()
	z, err := o.server.Connz(&server.ConnzOptions{Username: true})
	if err != nil {
		o.t.Fatal(err)
	}
	return z.Conns
}

// works sends a report and takes it.
func works(t *testing.T, c *natsjs.Conn, round uint64) error {
	t.Helper()
	ctx := t.Context()
	if acks, err := c.Publish(ctx, []stream.Outgoing{{Subject: task.Report(stream.Round(round), 1),
		ID: [16]byte{byte(round)}, Data: []byte{byte(round)}}}); err != nil ||
		acks[0].Status != stream.Stored {
		return fmt.Errorf("publish: %v, %w", acks, err)
	}
	r, err := c.Reader(ctx, task)
	if err != nil {
		return err
	}
	got, err := r.Fetch(ctx, 1, 10*time.Second)
	if err != nil || len(got) != 1 || got[0].Data[0] != byte(round) {
		return fmt.Errorf("fetch: %v, %w", got, err)
	}
	return got[0].Ack()
}

// TestCredentialsAreRenewed: in operator mode a user has a JWT for a while. The file that holds a renewed one is read
// at the next connection, so that a process outlives the key that vouched for it.
func TestCredentialsAreRenewed(t *testing.T) {
	first, firstKey := keyPair(t, nkeys.CreateAccount)
	second, secondKey := keyPair(t, nkeys.CreateAccount)
	o := operate(t, firstKey, secondKey)
	user, _ := keyPair(t, nkeys.CreateUser)
	file := filepath.Join(t.TempDir(), "user.creds")
	o.sign(user, first, file)
	said := make(overheard, 1)
	c, err := natsjs.Connect(natsjs.ConnectConfig{URL: o.server.ClientURL(), Creds: file, Reconnect: soon,
		Log: slog.New(slog.NewTextHandler(said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	provision(t, c, task, natsadmin.Options{})
	if err := works(t, c, 1); err != nil {
		t.Fatal(err)
	}
	wakes, err := c.Watch(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	<-wakes
	renewed := o.sign(user, second, file)
	o.only(secondKey)
	select {
	case <-wakes: // of the reconnection
	case <-time.After(time.Minute):
		t.Fatal("no connection with the renewed credentials")
	}
	if at := o.connections(); len(at) != 1 || at[0].JWT != renewed {
		t.Errorf("%d connections, not one with the renewed JWT", len(at))
	}
	if err := works(t, c, 2); err != nil {
		t.Error(err)
	}
	if len(said) > 0 {
		t.Error("the same user is called another one")
	}

	// Another user gets in, and no answer: that is said.
	other, _ := keyPair(t, nkeys.CreateUser)
	o.sign(other, second, file)
	o.only(secondKey)
	select {
	case <-said:
	case <-time.After(time.Minute):
		t.Fatal("nothing is said of another user")
	}
	if err := works(t, c, 3); err == nil {
		t.Error("answers reach another user than the one whose inbox they come on")
	}
}

// overheard waits for a line of the log about another user.
type overheard chan struct{}

func (o overheard) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("another user")) {
		select {
		case o <- struct{}{}:
		default:
		}
	}
	return len(line), nil
}
