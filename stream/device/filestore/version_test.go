package filestore

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/stream/device/participation"
)

// TestRecordsOfOtherPrograms: a record of another version is neither guessed at nor taken for an event that has not
// taken part, and the error says whose it is.
func TestRecordsOfOtherPrograms(t *testing.T) {
	for _, v := range []byte{0, 3, 0xff} {
		settled := participation.Record{State: participation.Counted, Rounds: 1, Draw: participation.Draw{Round: 1}}
		data, err := settled.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		data[0] = v
		payload := appendSettled(nil, data, 1, func(int) participation.Key { return participation.Key{2} })
		want := fmt.Sprintf("version %d, of another program: this one reads 1 and 2: use the program that wrote it or a newer one", v)
		if err := newIndex().apply(0, payload); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("version %d: %v", v, err)
		}
		// A charged one, sealed as this program seals.
		x, k := newIndex(), &roundKey{}
		x.keys[k.id] = k
		b := binary.AppendUvarint(append([]byte{chargedBlock}, k.id[:]...), k.next())
		b = appendKeys(b, 1, func(int) participation.Key { return participation.Key{1} })
		b = binary.LittleEndian.AppendUint32(b, uint32(4+len(data)+sealOverhead))
		text := len(b)
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(data))), data...)
		if b, err = k.seal(b, text, k.nonce); err != nil {
			t.Fatal(err)
		}
		if err := x.apply(0, b); err != nil {
			t.Fatal(err)
		}
		if err := x.open(x.inOrder()[0], b, func(participation.Record) error { return nil }); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("version %d, charged: %v", v, err)
		}
	}
}

// TestFilesOfOtherPrograms: files of another format are refused before anything in them is read.
func TestFilesOfOtherPrograms(t *testing.T) {
	for _, v := range []byte{0, 2, 9} {
		dir := t.TempDir()
		s, err := Open(Path(dir, "churn"))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenLedger(dir); err != nil {
			t.Fatal(err)
		}
		for kind, path := range map[string]string{
			participationKind: filepath.Join(Path(dir, "churn"), name(1, logSuffix)), ledgerKind: filepath.Join(dir, LedgerName),
		} {
			if err := os.WriteFile(path, header(kind, v, [8]byte{}), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, participations := Open(Path(dir, "churn"))
		_, written := OpenLedger(dir)
		_, read := ReadLedger(dir)
		for what, err := range map[string]error{"participations": participations, "a ledger": written,
			"a ledger, read": read} {
			if err == nil || !strings.Contains(err.Error(),
				"this program reads 1: use the program that wrote it or a newer one") {
				t.Errorf("%s of format %d: %v", what, v, err)
			}
		}
	}
}
