package issuer

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/text/unicode/norm"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/grant"
)

// The PEM block of a key file, and its header that names the task.
const (
	keyBlock  = "PANLEARN ISSUER KEY"
	keyHeader = "Task"
)

// personLabel labels what hashes of people are keyed with.
const personLabel = "panlearn issuer people v1"

// A Key is an issuer's private key of one task, and what follows from it.
type Key struct {
	Task   stream.Task
	Signer *grant.Signer
	people []byte // key of the hashes of people
}

// who returns the hash of a person's name. Two texts that differ only in how Unicode composes their characters (NFC and
// NFD) name one person.
func (k *Key) who(person string) [sha256.Size]byte {
	mac := hmac.New(sha256.New, k.people)
	mac.Write(norm.NFC.AppendString(nil, person))
	return [sha256.Size]byte(mac.Sum(nil))
}

// Format shows nothing of the key.
func (k Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, "issuer key of "+string(k.Task)) }

// MarshalText returns the placeholder of Format, for encoding/json.
func (k Key) MarshalText() ([]byte, error) { return fmt.Append(nil, k), nil }

func newKey(task stream.Task, private *rsa.PrivateKey) (*Key, error) {
	signer, err := grant.NewSigner(private)
	if err != nil {
		return nil, err
	}
	people, err := hkdf.Key(sha256.New, x509.MarshalPKCS1PrivateKey(private), nil, personLabel, sha256.Size)
	if err != nil {
		return nil, err
	}
	return &Key{Task: task, Signer: signer, people: people}, nil
}

// CreateKey makes a key for a task in a new file of mode 0600, and beside it the mark of a list that is empty. It
// refuses a file that exists, and a mark by which people have their tokens: that mark belongs to a missing key, whose
// list could then be an older copy.
func CreateKey(path string, task stream.Task) (*Key, error) {
	private, err := rsa.GenerateKey(rand.Reader, 8*grant.SignatureSize)
	if err != nil {
		return nil, err
	}
	key, err := newKey(task, private)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: keyBlock, Headers: map[string]string{keyHeader: string(task)}, Bytes: der})
	unlock, err := lockMark(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unlock() }()
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("%s is there: a task has one key, and a key one task", path)
	}
	if n, err := readMark(path + markSuffix); !errors.Is(err, fs.ErrNotExist) && (err != nil || n > 0) {
		return nil, fmt.Errorf("%s says that people have their token, and its key is away: put the key back, or make one under "+
			"another name", path+markSuffix)
	}
	if err := writeMark(path, 0); err != nil { // first: a key without its mark signs nothing
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return key, errors.Join(disk.Put(f, text), disk.SyncFolder(filepath.Dir(path)))
}

// LoadKey reads a key file.
func LoadKey(path string) (*Key, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, rest := pem.Decode(text)
	if block == nil || block.Type != keyBlock || len(rest) > 0 {
		return nil, fmt.Errorf("%s: not a file of ingest keygen issuer", path)
	}
	task, err := stream.ParseTask(block.Headers[keyHeader])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: not a private key", path)
	}
	private, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: not an RSA key", path)
	}
	key, err := newKey(task, private)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// OpenKey reads the key file of a task, or makes it where it is not there. It refuses the key of another task.
func OpenKey(path string, task stream.Task) (*Key, error) {
	key, err := LoadKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		return CreateKey(path, task)
	}
	if err == nil && key.Task != task {
		return nil, fmt.Errorf("%s is the key of the task %s: a key serves one task", path, key.Task)
	}
	return key, err
}
