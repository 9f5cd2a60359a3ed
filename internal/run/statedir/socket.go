package statedir

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// Inside the state folder: the control socket, and the file that says where the socket is if it is not there.
const (
	socketName    = "control.sock"
	addressFile   = "control.address"
	privatePrefix = "panlearn-"
)

// maxSocketPath is a length in bytes that every system's sockaddr_un takes.
const maxSocketPath = 100

// ListenControl makes the control socket of a state folder, with mode 0600. The caller holds the folder's lock. The
// socket is in the folder or, if the folder's path is too long for a socket, in a private temporary folder, which a
// file in the state folder then names. A socket that a dead process left is removed. The caller closes the listener,
// then calls remove.
func ListenControl(dir string) (listener net.Listener, remove func(), err error) {
	fail := func(err error) (net.Listener, func(), error) { return nil, nil, fmt.Errorf("control socket: %w", err) }
	path, private, address := shortest(filepath.Join(dir, socketName)), "", filepath.Join(dir, addressFile)
	if err := removeStale(dir); err != nil {
		return fail(err)
	}
	if len(path) > maxSocketPath {
		if private, err = os.MkdirTemp("", privatePrefix); err != nil { // mode 0700
			return fail(err)
		}
		path = filepath.Join(private, socketName)
	}
	remove = func() {
		if private != "" {
			os.Remove(address)
			os.RemoveAll(private)
		}
	}
	if listener, err = net.Listen("unix", path); err != nil {
		remove()
		return fail(err)
	}
	if err = os.Chmod(path, 0o600); err == nil && private != "" {
		err = os.WriteFile(address, []byte(path+"\n"), 0o600)
	}
	if err != nil {
		listener.Close()
		remove()
		return fail(err)
	}
	return listener, remove, nil
}

// removeStale removes the socket of a process that died. We hold the store's lock, so nobody listens there. Of a
// temporary folder it takes only what ListenControl makes, because the address is read from a file.
func removeStale(dir string) error {
	if path, ok := elsewhere(dir); ok {
		private := filepath.Dir(path)
		if filepath.Base(path) == socketName && strings.HasPrefix(filepath.Base(private), privatePrefix) {
			os.Remove(path)
			os.Remove(private)
		}
	}
	for _, name := range []string{socketName, addressFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// elsewhere returns the path of the socket that the folder's address file names; ok is false if it names none.
func elsewhere(dir string) (path string, ok bool) {
	text, err := os.ReadFile(filepath.Join(dir, addressFile))
	path = strings.TrimSpace(string(text))
	return path, err == nil && filepath.IsAbs(path)
}

// shortest returns a path as it is, or relative to the working folder if that is shorter.
func shortest(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if absolute, err := filepath.Abs(path); err == nil {
		if relative, err := filepath.Rel(here, absolute); err == nil && len(relative) < len(path) {
			return relative
		}
	}
	return path
}

// Dial connects to the control socket of the learner that holds a state folder.
func Dial(ctx context.Context, dir string) (net.Conn, error) {
	path, ok := elsewhere(dir)
	if !ok {
		path = shortest(filepath.Join(dir, socketName))
	}
	return new(net.Dialer).DialContext(ctx, "unix", path)
}
