package filestore_test

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client"
	"github.com/panlearn/panlearn/stream/client/filestore"
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
	for _, c := range []struct {
		version byte
		want    string
	}{{1, "version 1, of an older program"}, {2, "version 2, of an older program"}, {5, "version 5, of a newer program"}, {0xff, "version 255, of a newer program"}} {
		path := filepath.Join(t.TempDir(), "a.participation")
		s := open(t, path)
		charged, settled := client.Participation{Key: client.Key{1}}, client.Participation{Key: client.Key{2}}
		for _, p := range []*client.Participation{&charged, &settled} {
			must(t, p.Join(client.Draw{Round: 1, Step: 1, Counts: []byte{7}}))
			p.Sending(nth(1), false)
		}
		settled.Decide(client.Closed{Round: 1, Attempt: nth(1)})
		must(t, s.Write(client.Change{Events: []client.Participation{charged, settled}}))
		must(t, s.Close())
		for _, bucket := range []string{"charged", "settled"} {
			rewrite(t, path, bucket, version(c.version))
		}
		s = open(t, path)
		for _, p := range []client.Participation{charged, settled} {
			if _, err := s.Read([]client.Key{p.Key}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("version %d: read %v: %v", c.version, p.State, err)
			}
		}
		failed := false
		for _, err := range s.Charged() {
			if failed = err != nil; !failed || !strings.Contains(err.Error(), c.want) {
				t.Errorf("version %d: listed: %v", c.version, err)
			}
		}
		if !failed {
			t.Errorf("version %d: lists nobody, and no error", c.version)
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

// first is an account as version 1 wrote it, before users could answer several rounds.
func first(standing uint64) []byte {
	task := stream.Hash{9}
	b := append([]byte{1, 1}, task[:]...)
	b = append(append(b, byte(len("churn"))), "churn"...)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(0.75))
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(1e-6))
	b = binary.AppendUvarint(b, standing)
	b = binary.AppendUvarint(b, standing/2)
	b = append(b, 1) // anonymous
	return binary.AppendUvarint(b, 1e12)
}

// TestLedgerOfOtherPrograms: what an older program charged stays charged, of one round, and is written anew with what is charged
// next. What a newer one wrote is refused, and nothing is charged beside it.
func TestLedgerOfOtherPrograms(t *testing.T) {
	for _, standing := range []uint64{0, 300} {
		dir := t.TempDir()
		l := openLedger(t, dir)
		add := func(name byte) error {
			return l.Update(time.UnixMilli(1e12), []client.Key{client.Everyone}, func(now time.Time, charges [][]client.Charge) error {
				charges[0] = append(charges[0], client.Charge{Task: stream.Hash{name}, Name: "next", Epsilon: 0.5, Delta: 1e-6, Rounds: 3, Most: 4, Standing: 1, Anonymous: true, At: now})
				return nil
			})
		}
		must(t, add(1))
		path := filepath.Join(dir, filestore.LedgerName)
		rewrite(t, path, "accounts", func(_, _ []byte) []byte { return first(standing) })
		rounds, epsilon := uint32(0), 0.0
		if standing > 0 {
			rounds, epsilon = 1, 0.75
		}
		for range 2 {
			s, err := client.ReadStatement(l, time.UnixMilli(1e12), 0)
			must(t, err)
			old := s.Tasks[0]
			if old.Task != (stream.Hash{9}) || old.Rounds != rounds || old.Most != 1 || old.Epsilon != 0.75 || old.Delta != 1e-6 ||
				old.Standing != standing || old.Open != standing/2 || !old.Anonymous || s.Epsilon < epsilon || s.Epsilon > epsilon+1e-9 {
				t.Errorf("%d standing: %+v, in all %v", standing, old, s.Epsilon)
			}
			if len(s.Tasks) == 1 {
				must(t, add(2))
				epsilon += 0.5
			}
		}
		rewrite(t, path, "accounts", version(3))
		if err := add(4); err == nil || !strings.Contains(err.Error(), "version 3, of a newer program") {
			t.Errorf("charged beside version 3: %v", err)
		}
		if _, err := client.ReadStatement(l, time.UnixMilli(1e12), 0); err == nil || !strings.Contains(err.Error(), "version 3, of a newer program") {
			t.Errorf("version 3 is read: %v", err)
		}
	}
}
