package devca

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/panlearn/panlearn/internal/disk"
)

// A Site is a folder from which an organisation runs a broker in operator mode: servers know the operator's public key
// and take whom its accounts signed, so a publisher comes and goes without a change on any server.
//
//	keys/operator.nk keys/ACCOUNT.nk        seeds: who has them admits users. They stay off the servers
//	server/ (or server-1/ ...)              what a server has: its configuration, operator.jwt, accounts/, certificates
//	users/NAME.creds users/NAME.env         a user: what its process has, and ca.pem
//	leaves/NAME/                            a leaf node near the devices of a publisher
//	site.json                               the users, and since when their keys do not count any more
//
// Files are readable by their owner alone.
type Site struct {
	dir string
	record
}

// A record is site.json.
type record struct {
	Accounts map[string]string    `json:"accounts"` // public keys, by name
	Users    map[string]*SiteUser `json:"users"`
	Servers  []string             `json:"servers"` // folders
}

// A SiteUser is a user of a site: a role, or a publisher.
type SiteUser struct {
	Account string    `json:"account"`
	Key     string    `json:"key"` // public
	Since   time.Time `json:"since"`
	// Revoked has the keys that do not count any more, and since when.
	Revoked map[string]time.Time `json:"revoked,omitempty"`
	Gone    bool                 `json:"gone,omitempty"` // the user has no key that counts
}

const (
	systemAccount = "SYS"
	pusher        = "operator" // the user of the system account, who sends changes to the servers
)

// publisherName matches names of publishers, which are names of files.
var publisherName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// InitSite makes the folder of a site with its servers and one user for each role and the relay. It takes Dir, Hosts,
// Servers, Lifetime and Now of the configuration.
func InitSite(c Config) (*Site, error) {
	c.Publishers = 1 // of Write's rules
	if err := c.validate(); err != nil {
		return nil, err
	}
	if _, err := c.routes(); err != nil {
		return nil, err
	}
	dir, err := c.fresh()
	if err != nil {
		return nil, err
	}
	s := &Site{dir: dir, record: record{Accounts: map[string]string{}, Users: map[string]*SiteUser{}}}
	for _, below := range []string{"keys", "users"} {
		if err := os.Mkdir(s.path(below), 0o700); err != nil {
			return nil, err
		}
	}
	if err := s.keys(); err != nil {
		return nil, err
	}
	if err := s.servers(c); err != nil {
		return nil, err
	}
	users := map[string]string{pusher: systemAccount, relay: devicesAccount}
	for account, role := range roleAccounts {
		users[role] = account
	}
	for name, account := range users {
		if err := s.admit(name, account, c.Now); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// OpenSite opens the folder of a site.
func OpenSite(dir string) (*Site, error) {
	s := &Site{dir: dir}
	text, err := os.ReadFile(s.path("site.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not the folder of a site, which learner site init makes: %w", dir, err)
	}
	if err == nil {
		err = json.Unmarshal(text, &s.record)
	}
	if err == nil && (s.Accounts == nil || s.Users == nil || len(s.Servers) == 0) {
		err = errors.New("want accounts, users and servers")
	}
	if err != nil {
		return nil, fmt.Errorf("site.json: %w", err)
	}
	return s, nil
}

func (s *Site) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

// PusherCreds returns the credentials for sending changes to the servers, and the authority of their certificates.
func (s *Site) PusherCreds() (creds, ca string) {
	return s.path("users", pusher+".creds"), s.path("users", "ca.pem")
}

// AddPublisher admits a publisher of a new name.
func (s *Site) AddPublisher(name string, now time.Time) error {
	if !publisherName.MatchString(name) {
		return fmt.Errorf("publisher %q: want a lower-case name of a-z, 0-9, _ and -", name)
	}
	if u := s.Users[name]; u != nil && !u.Gone {
		return fmt.Errorf("%w: user %q: rotate gives it another key", fs.ErrExist, name)
	}
	return s.admit(name, devicesAccount, now)
}

// Revoke makes all keys of a publisher invalid, once the servers have the account's claims (Account). After a crash
// Claims signs the rest.
func (s *Site) Revoke(name string, now time.Time) error {
	u := s.Users[name]
	if u == nil || !u.Gone {
		var err error
		if u, err = s.publisher(name); err != nil {
			return err
		}
		s.retire(u, now)
		u.Gone = true
		if err := s.save(); err != nil { // before all else: a key that is recorded as revoked is signed so, now or later
			return err
		}
	}
	for _, end := range []string{".creds", ".env"} {
		if err := os.Remove(s.path("users", name+end)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.RemoveAll(s.path("leaves", name)); err != nil {
		return err
	}
	return s.resign(u.Account)
}

// Rotate gives a user another key. The old key becomes invalid once the servers have the account's claims (Account).
// After a crash Claims signs the rest, and another Rotate replaces the key.
func (s *Site) Rotate(name string, now time.Time) error {
	u := s.Users[name]
	if u == nil || u.Gone {
		return fmt.Errorf("no user %q: %w", name, fs.ErrNotExist)
	}
	s.retire(u, now)
	if err := s.admit(name, u.Account, now); err != nil {
		return err
	}
	return s.resign(u.Account)
}

func (s *Site) publisher(name string) (*SiteUser, error) {
	u := s.Users[name]
	switch {
	case u == nil || u.Gone:
		return nil, fmt.Errorf("no user %q: %w", name, fs.ErrNotExist)
	case u.Account != devicesAccount:
		return nil, fmt.Errorf("user %q is no publisher: rotate gives it another key", name)
	}
	return u, nil
}

func (s *Site) retire(u *SiteUser, now time.Time) {
	if u.Revoked == nil {
		u.Revoked = map[string]time.Time{}
	}
	u.Revoked[u.Key] = now.UTC()
}

// Account returns the signed claims of an account that a user is in, for the servers.
func (s *Site) Account(user string) (string, error) {
	u := s.Users[user]
	if u == nil {
		return "", fmt.Errorf("no user %q: %w", user, fs.ErrNotExist)
	}
	return s.claims(u.Account)
}

// Claims signs all accounts but the system's again, as this program's configuration and site.json have them, and
// returns what was signed: for servers that were away, for changes that a crash cut short, and after an upgrade.
func (s *Site) Claims() (tokens []string, err error) {
	for _, account := range slices.Sorted(maps.Keys(s.Accounts)) {
		if account == systemAccount {
			continue
		}
		if err := s.resign(account); err != nil {
			return nil, err
		}
		token, err := s.claims(account)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}

// claims returns the signed claims of an account as the servers' folders have them.
func (s *Site) claims(account string) (string, error) {
	token, err := os.ReadFile(s.path(s.Servers[0], "accounts", s.Accounts[account]+".jwt"))
	return string(token), err
}

// keys makes the keys of operator and accounts.
func (s *Site) keys() error {
	w := &writer{dir: s.path("keys")}
	for _, name := range append(slices.Sorted(maps.Keys(roleAccounts)), devicesAccount, systemAccount, pusher) {
		create := nkeys.CreateAccount
		if name == pusher {
			create = nkeys.CreateOperator
		}
		pair, err := create()
		if err != nil {
			return err
		}
		seed, err := pair.Seed()
		if err != nil {
			return err
		}
		w.file(name+".nk", append(slices.Clone(seed), '\n'))
		public, err := pair.PublicKey()
		if err != nil {
			return err
		}
		pair.Wipe()
		if name != pusher {
			s.Accounts[name] = public
		}
	}
	return w.err
}

// key reads a key of keys/.
func (s *Site) key(name string) (nkeys.KeyPair, error) {
	seed, err := os.ReadFile(s.path("keys", name+".nk"))
	if err != nil {
		return nil, err
	}
	pair, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(seed))))
	if err != nil {
		return nil, fmt.Errorf("keys/%s.nk: %w", name, err)
	}
	return pair, nil
}

// resign signs an account again, with what is revoked of its users, into the folders of the servers.
func (s *Site) resign(account string) error {
	all, err := shippedAccounts(nobody)
	if err != nil {
		return err
	}
	var claims *jwt.AccountClaims
	if account == systemAccount {
		claims = jwt.NewAccountClaims(s.Accounts[account])
		claims.Name = account
	} else if claims, err = accountClaims(account, all, s.Accounts); err != nil {
		return err
	}
	for _, u := range s.Users {
		for key, at := range u.Revoked {
			if u.Account == account {
				claims.RevokeAt(key, at)
			}
		}
	}
	operator, err := s.key(pusher)
	if err != nil {
		return err
	}
	defer operator.Wipe()
	token, err := claims.Encode(operator)
	if err != nil {
		return fmt.Errorf("account %s: %w", account, err)
	}
	for _, server := range s.Servers {
		if err := disk.Durable.Replace(s.path(server, "accounts", s.Accounts[account]+".jwt"), []byte(token)); err != nil {
			return err
		}
	}
	return nil
}

// nobody is a placeholder in the form of a user's public key.
const nobody = "UNOBODY"

// admit makes a user with a new key: its credentials, and its environment.
func (s *Site) admit(name, account string, now time.Time) error {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	defer pair.Wipe()
	public, err := pair.PublicKey()
	if err != nil {
		return err
	}
	claims := jwt.NewUserClaims(public)
	claims.Name = name
	if account != systemAccount {
		if claims, err = userClaims(account, name, public); err != nil {
			return err
		}
	}
	signer, err := s.key(account)
	if err != nil {
		return err
	}
	defer signer.Wipe()
	token, err := claims.Encode(signer)
	if err != nil {
		return fmt.Errorf("user %s: %w", name, err)
	}
	seed, err := pair.Seed()
	if err != nil {
		return err
	}
	creds, err := jwt.FormatUserConfig(token, seed)
	if err != nil {
		return fmt.Errorf("user %s: %w", name, err)
	}
	u := s.Users[name]
	if u == nil {
		u = &SiteUser{}
		s.Users[name] = u
	}
	u.Account, u.Key, u.Since, u.Gone = account, public, now.UTC(), false
	if err := s.save(); err != nil { // before the credentials: a key that nobody recorded could not be revoked
		return err
	}
	if err := disk.Durable.Replace(s.path("users", name+".creds"), creds); err != nil {
		return err
	}
	return disk.Durable.Replace(s.path("users", name+".env"), fmt.Appendf(nil, "PANLEARN_CREDS='%s'\nPANLEARN_TLS_CA='%s'\n",
		s.path("users", name+".creds"), s.path("users", "ca.pem")))
}

// servers writes what each server has.
func (s *Site) servers(c Config) error {
	ca, err := newAuthority("panlearn site authority", c.Now, c.Lifetime)
	if err != nil {
		return err
	}
	users := &writer{dir: s.path("users")}
	users.file("ca.pem", encode("CERTIFICATE", ca.cert.Raw))
	if users.err != nil {
		return users.err
	}
	operator, err := s.key(pusher)
	if err != nil {
		return err
	}
	defer operator.Wipe()
	public, err := operator.PublicKey()
	if err != nil {
		return err
	}
	claims := jwt.NewOperatorClaims(public)
	claims.Name, claims.SystemAccount = "panlearn", s.Accounts[systemAccount]
	token, err := claims.Encode(operator)
	if err != nil {
		return err
	}
	s.Servers = []string{"server"}
	if n := len(c.Servers); n > 0 {
		s.Servers = nil
		for i := range n {
			s.Servers = append(s.Servers, fmt.Sprintf("server-%d", i+1))
		}
		if err := c.links(s.dir); err != nil {
			return err
		}
	}
	for i, name := range s.Servers {
		hosts := append(slices.Clone(localhost), c.Hosts...)
		if i < len(c.Servers) {
			hosts = append(hosts, hostOf(c.Servers[i]))
		}
		if err := os.MkdirAll(s.path(name, "accounts"), 0o700); err != nil {
			return err
		}
		w := &writer{dir: s.path(name)}
		w.pair(ca, "server", hosts)
		w.file("operator.jwt", []byte(token))
		w.file("panlearn.conf", s.configuration(w.dir, c.LeafListen))
		if w.err != nil {
			return w.err
		}
	}
	for account := range s.Accounts {
		if err := s.resign(account); err != nil {
			return err
		}
	}
	return nil
}

// configuration returns the text of a server's panlearn.conf: what ships, with the operator for the accounts.
func (s *Site) configuration(dir, leafListen string) []byte {
	leaves := ""
	if leafListen != "" {
		leaves = fmt.Sprintf(`
# Servers near the devices, each with the credentials of a publisher (learner site leaf).
leafnodes {
  listen: "%[2]s"
  tls {
    cert_file: "%[1]s/server.pem"
    key_file: "%[1]s/server-key.pem"
    min_version: "1.3"
  }
}
default_js_domain: { %[3]s: "" } # otherwise requests for records, which publishers read by direct gets, are not passed on
`, dir, leafListen, s.Accounts[devicesAccount])
	}
	return fmt.Appendf(nil, `# Written by learner site: a NATS server for panlearn in operator mode. It knows no user: the accounts in accounts/, which the
# operator signed, say who admits them. It is told of changes while it runs (learner site push).
#
#   nats-server -c %[1]s/panlearn.conf   -a 0.0.0.0 listens on all interfaces
listen: "127.0.0.1:4222"
max_payload: 1MB
max_subscriptions: 1000

operator: "%[1]s/operator.jwt"
system_account: %[2]s
resolver { type: full, dir: "%[1]s/accounts", allow_delete: false, interval: "1m" }

tls {
  cert_file: "%[1]s/server.pem"
  key_file: "%[1]s/server-key.pem"
  min_version: "1.3"
}

# Without sync_interval: always a power loss takes what was acknowledged in the last two minutes.
jetstream {
  store_dir: "%[1]s/jetstream"
  sync_interval: always
}
%[3]s`, dir, s.Accounts[systemAccount], leaves)
}

func (s *Site) save() error {
	text, err := json.MarshalIndent(s.record, "", "  ")
	if err != nil {
		return err
	}
	return disk.Durable.Replace(s.path("site.json"), append(text, '\n'))
}
