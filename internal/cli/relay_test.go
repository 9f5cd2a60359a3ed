package cli

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestASharedTokenIsWarnedOf: a token that others on the machine can read gets a warning with the command that mends it,
// and is not quoted.
func TestASharedTokenIsWarnedOf(t *testing.T) {
	const secret = "token-of-this-test"
	for mode, warned := range map[os.FileMode]bool{0o644: true, 0o640: true, 0o620: true, 0o600: false, 0o400: false} {
		warned = warned && runtime.GOOS != "windows"
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		for _, flag := range []string{"--http-token", "--relay-token"} {
			var log bytes.Buffer
			to := slog.New(slog.NewTextHandler(&log, nil))
			if flag == "--http-token" {
				WarnOfShared(to, flag, file)
			} else {
				(&Relayed{URL: "https://reports.example", tokenFile: file}).Warn(to)
			}
			said := log.String()
			if told := strings.Contains(said, "level=WARN") && strings.Contains(said, "chmod 600 "+file) &&
				strings.Contains(said, flag); told != warned || !warned && said != "" || strings.Contains(said, secret) {
				t.Errorf("%s of mode %o: %s", flag, mode, said)
			}
		}
	}
	var log bytes.Buffer
	WarnOfShared(slog.New(slog.NewTextHandler(&log, nil)), "--http-token", "")
	if log.Len() > 0 {
		t.Errorf("without a token: %s", &log)
	}
}
