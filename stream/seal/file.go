package seal

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/panlearn/panlearn/internal/disk"
)

// pemType is the PEM type that `openssl genpkey -algorithm ed25519` writes too.
const pemType = "PRIVATE KEY"

// maxIdentityFile is far above the 119 bytes of an Ed25519 key in PEM.
const maxIdentityFile = 4096

// LoadIdentity reads an identity: one PEM block with an Ed25519 key in PKCS #8. A file that others than its owner
// may read is refused, on Windows none.
func LoadIdentity(path string) (*Identity, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("load identity: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("load identity: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("load identity %s: not a regular file", path)
	}
	if disk.Shared(info) {
		return nil, fmt.Errorf("load identity %s: mode %#o lets others read the private key: run chmod 600 %[1]s", path,
			info.Mode().Perm())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxIdentityFile+1))
	if err != nil {
		return nil, fmt.Errorf("load identity: %w", err)
	}
	defer clear(data)
	id, err := parseIdentity(data)
	if err != nil {
		return nil, fmt.Errorf("load identity %s: %w", path, err)
	}
	return id, nil
}

func parseIdentity(data []byte) (*Identity, error) {
	if len(data) > maxIdentityFile {
		return nil, fmt.Errorf("more than %d bytes: not an identity", maxIdentityFile)
	}
	block, rest := pem.Decode(data)
	if block == nil || block.Type != pemType || len(rest) != 0 {
		return nil, fmt.Errorf("want one PEM block of type %q and nothing after it", pemType)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the PEM block holds no PKCS #8 key")
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("a key of type %T: want Ed25519 (openssl genpkey -algorithm ed25519)", key)
	}
	return &Identity{private: private}, nil
}

// LoadOrCreateIdentity reads the identity at path, or makes one there: mode 0600, missing parents 0700, durable before
// it returns, and never over a file that exists, so that several processes that start at once all get the same
// identity.
func LoadOrCreateIdentity(path string) (id *Identity, created bool, err error) {
	if id, err = LoadIdentity(path); !errors.Is(err, fs.ErrNotExist) {
		return id, false, err
	}
	if id, err = NewIdentity(); err != nil {
		return nil, false, err
	}
	switch err = id.create(path); {
	case errors.Is(err, fs.ErrExist):
		id, err = LoadIdentity(path)
		return id, false, err
	case err != nil:
		return nil, false, fmt.Errorf("create identity: %w", err)
	}
	return id, true, nil
}

// create links a complete, synced file into place: link, unlike rename, fails where a file exists.
func (id *Identity) create(path string) error {
	der, err := x509.MarshalPKCS8PrivateKey(id.private)
	if err != nil {
		return err
	}
	defer clear(der)
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, ".identity-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	err = errors.Join(pem.Encode(tmp, &pem.Block{Type: pemType, Bytes: der}), tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), path); err != nil {
		return err
	}
	return disk.SyncFolder(dir)
}
