package cli

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// TestProfiles: the flag serves on loopback, and on nothing else.
func TestProfiles(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", "[::]:0", "x"} {
		p := Profiles{address}
		var code *codedError
		if _, err := p.Serve(t.Context(), slog.New(slog.DiscardHandler)); !errors.As(err, &code) || code.code != ExitUsage {
			t.Errorf("%s: %v, want a refusal", address, err)
		}
	}
	var none Profiles
	stop, err := none.Serve(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	stop()
	var said strings.Builder
	p := Profiles{"0"}
	if stop, err = p.Serve(t.Context(), slog.New(slog.NewTextHandler(&said, nil))); err != nil {
		t.Fatal(err)
	}
	_, url, _ := strings.Cut(said.String(), "pprof=")
	url = strings.TrimSpace(url)
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusOK || len(body) == 0 {
		t.Errorf("%s: %s, %d bytes, %v", url, answer.Status, len(body), err)
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if _, err := http.Get(url); err == nil {
		t.Error("it is served after its end")
	}
}
