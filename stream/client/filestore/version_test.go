package filestore_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/panlearn/panlearn/stream/client/filestore"
	"github.com/panlearn/panlearn/stream/client/ledger"
	"github.com/panlearn/panlearn/stream/client/participation"
)

// rewrite changes every value of a bucket of a file that nobody holds.
func rewrite(t *testing.T, path, bucket string, change func(key, value []byte) []byte) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	must(t, err)
	must(t, db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		all := map[string][]byte{}
		if err := b.ForEach(func(k, v []byte) error { all[string(k)] = change(k, append([]byte(nil), v...)); return nil }); err != nil {
			return err
		}
		for k, v := range all {
			if err := b.Put([]byte(k), v); err != nil {
				return err
			}
		}
		return nil
	}))
	must(t, db.Close())
}

// version has records begin with another version.
func version(v byte) func(_, value []byte) []byte {
	return func(_, value []byte) []byte { value[0] = v; return value }
}

// TestParticipationsOfOtherPrograms: a record of another version is neither guessed at nor taken for an event that has not taken
// part, and the error says whose it is.
func TestParticipationsOfOtherPrograms(t *testing.T) {
	for v, want := range map[byte]string{0: "version 0, of another program", 2: "version 2, of another program", 0xff: "version 255, of another program"} {
		path := filepath.Join(t.TempDir(), "a.participation")
		s := open(t, path)
		charged, settled := participation.Record{Key: participation.Key{1}}, participation.Record{Key: participation.Key{2}}
		for _, p := range []*participation.Record{&charged, &settled} {
			must(t, p.Join(participation.Draw{Round: 1, Step: 1, Counts: []byte{7}}))
			p.Sending(nth(1), false)
		}
		settled.Decide(participation.Closed{Round: 1, Attempt: nth(1)})
		must(t, s.Write(participation.Change{Events: []participation.Record{charged, settled}}))
		must(t, s.Close())
		for _, bucket := range []string{"charged", "settled"} {
			rewrite(t, path, bucket, version(v))
		}
		s = open(t, path)
		for _, p := range []participation.Record{charged, settled} {
			if _, err := s.Read([]participation.Key{p.Key}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("version %d: read %v: %v", v, p.State, err)
			}
		}
		failed := false
		for _, err := range s.Charged() {
			if failed = err != nil; !failed || !strings.Contains(err.Error(), want) {
				t.Errorf("version %d: listed: %v", v, err)
			}
		}
		if !failed {
			t.Errorf("version %d: lists nobody, and no error", v)
		}
		must(t, s.Close())
	}
}

// TestFilesOfOtherPrograms: files of another format are refused before anything in them is read.
func TestFilesOfOtherPrograms(t *testing.T) {
	for _, v := range []byte{0, 2, 9} {
		dir := t.TempDir()
		must(t, open(t, filestore.Path(dir, "churn")).Close())
		openLedger(t, dir)
		version := func(key, value []byte) []byte {
			if strings.HasSuffix(string(key), "version") {
				value = []byte{v}
			}
			return value
		}
		rewrite(t, filestore.Path(dir, "churn"), "meta", version)
		rewrite(t, filepath.Join(dir, filestore.LedgerName), "meta", version)
		if _, err := filestore.Open(filestore.Path(dir, "churn")); err == nil || !strings.Contains(err.Error(), "this program reads 1") {
			t.Errorf("participations of format %d: %v", v, err)
		}
		if _, err := filestore.OpenLedger(dir); err == nil || !strings.Contains(err.Error(), "this program reads 1") {
			t.Errorf("a ledger of format %d: %v", v, err)
		}
		if _, err := filestore.ReadLedger(dir); err == nil || !strings.Contains(err.Error(), "this program reads 1") {
			t.Errorf("a ledger of format %d, read: %v", v, err)
		}
	}
}

// TestLedgerOfOtherPrograms: what another program wrote is refused, and nothing is charged beside it.
func TestLedgerOfOtherPrograms(t *testing.T) {
	dir := t.TempDir()
	l := openLedger(t, dir)
	add := func() error {
		return l.Update(time.UnixMilli(1e12), []participation.Key{ledger.Everyone}, func(now time.Time, charges [][]ledger.Charge) error {
			charges[0] = append(charges[0], ledger.Charge{Name: "next", Epsilon: 0.5, Delta: 1e-6, Rounds: 3, Most: 4, Standing: 1, Anonymous: true, At: now})
			return nil
		})
	}
	must(t, add())
	rewrite(t, filepath.Join(dir, filestore.LedgerName), "accounts", version(3))
	if err := add(); err == nil || !strings.Contains(err.Error(), "version 3, of another program") {
		t.Errorf("charged beside version 3: %v", err)
	}
	if _, err := ledger.ReadStatement(l, time.UnixMilli(1e12), 0); err == nil || !strings.Contains(err.Error(), "version 3, of another program") {
		t.Errorf("version 3 is read: %v", err)
	}
}
