package cli

import (
	"errors"
	"net"
	"strings"
	"testing"
)

// TestListenOnLoopback: without a host an endpoint is for this machine alone; other interfaces have to be named.
func TestListenOnLoopback(t *testing.T) {
	for _, test := range []struct {
		address  string
		loopback bool
	}{
		{":0", true}, {"0", true}, {"127.0.0.1:0", true}, {"localhost:0", true}, {"0.0.0.0:0", false},
	} {
		l, err := Listen("--http", test.address)
		if err != nil {
			t.Errorf("%s: %v", test.address, err)
			continue
		}
		at := l.Addr().(*net.TCPAddr)
		if at.IP.IsLoopback() != test.loopback || at.IP.IsUnspecified() == test.loopback {
			t.Errorf("%s: listens on %v, loopback wanted: %t", test.address, at, test.loopback)
		}
		l.Close()
	}
	for _, address := range []string{"nowhere", "a:b:c", "127.0.0.1:70000", "-1", "127.0.0.1", "127.0.0.1:http",
		"1.2.3.4.5:0"} {
		l, err := Listen("--http", address)
		var coded *codedError
		if !errors.As(err, &coded) || coded.code != ExitUsage {
			t.Errorf("%s: %v, want a usage error", address, err)
		}
		if err == nil {
			l.Close()
		}
	}
}

// TestListenWhereSomebodyDoes: an address that is taken may be free later, so that supervisors try again: exit code 75.
func TestListenWhereSomebodyDoes(t *testing.T) {
	first, err := Listen("--http", "0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	_, err = Listen("--http", first.Addr().String())
	var coded *codedError
	if !errors.As(err, &coded) || coded.code != ExitTransient || !strings.Contains(err.Error(), "PANLEARN_HTTP") {
		t.Errorf("%v: want exit code 75, and the variable that names another address", err)
	}
}
