package pipeline

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"path/filepath"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/grants"
	"github.com/panlearn/panlearn/stream/grant/issuer"
)

// issuerKey returns the file of the issuer's key, in a pipeline's folder.
func issuerKey(dir string) string { return filepath.Join(dir, "issuer.key") }

// Issuer makes the issuer of a pipeline's folder, and returns its public key. In one process with the rest it shows how
// tokens work, and protects from nobody who can look into the process.
func Issuer(dir string, task stream.Task) ([]byte, error) {
	key, err := issuer.OpenKey(issuerKey(dir), task)
	if err != nil {
		return nil, err
	}
	return key.Signer.Public(), nil
}

// issue serves the issuer of the folder on loopback, and returns the source by which the gateway reaches it; stop ends
// it.
func (c Config) issue(name stream.Task) (source grants.Source, stop func() error, err error) {
	key, err := issuer.OpenKey(issuerKey(c.Dir), name)
	if err != nil {
		return nil, nil, err
	}
	list, err := issuer.OpenList(filepath.Join(c.Dir, "issuer"), issuerKey(c.Dir), key)
	if err != nil {
		return nil, nil, err
	}
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	token := hex.EncodeToString(random[:])
	gateway, err := httpaccess.Token(token)
	if err != nil {
		return nil, nil, errors.Join(err, list.Close())
	}
	nobody := func(*http.Request) (string, error) { return "", errors.New("nobody logs in here") }
	handler, err := issuer.NewHandler(issuer.Config{Key: key, List: list, Login: nobody, Gateways: &gateway, Logger: c.Logger})
	if err != nil {
		return nil, nil, errors.Join(err, list.Close())
	}
	listening := httpaccess.Listening{}
	if listening.HTTP, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, nil, errors.Join(err, list.Close())
	}
	server, err := listening.Server(handler)
	if err != nil {
		return nil, nil, errors.Join(err, list.Close(), listening.HTTP.Close())
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listening.HTTP) // ends with Close
	}()
	stop = func() error {
		err := server.Close()
		<-done
		return errors.Join(err, list.Close())
	}
	return grants.Gateway{URL: "http://" + listening.HTTP.Addr().String() + "/v1/tasks/" + string(name) + "/grants", Token: token},
		stop, nil
}
