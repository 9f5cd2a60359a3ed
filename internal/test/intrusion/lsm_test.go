package intrusion

import (
	"bytes"
	"context"
	"errors"

	"io"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A version is one value that an LSM tree holds, current or not.
type version struct {
	where, key string
	value      []byte
}

// versions returns all values in the logs and tables of a stolen Pebble folder, overwritten ones too. A file
// that was cut while it was copied is read as far as it goes.
func versions(t *testing.T, l loot) []version {
	t.Helper()
	var all []version
	for name, data := range l.files {
		switch filepath.Ext(name) {
		case ".log":
			number, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(name), ".log"), 10, 64)
			if err != nil {
				continue // not one of Pebble's
			}
			all = append(all, inLog(t, name, number, data)...)
		case ".sst":
			all = append(all, inTable(t, name, data)...)
		}
	}
	return all
}

// numbered calls a function of a file number, whose type Pebble does not export.
func numbered[N ~uint64](f func(io.Reader, N) *record.Reader, r io.Reader, n uint64) *record.Reader {
	return f(r, N(n))
}

func inLog(t *testing.T, name string, number uint64, data []byte) (all []version) {
	t.Helper()
	r := numbered(record.NewReader, bytes.NewReader(data), number)
	for {
		next, err := r.Next()
		if err != nil {
			return all // io.EOF, or the torn end
		}
		repr, err := io.ReadAll(next)
		if err != nil {
			return all
		}
		if _, ok := batchrepr.ReadHeader(repr); !ok {
			t.Errorf("%s: a record that is no batch", name)
			continue
		}
		batch := batchrepr.Read(repr)
		for {
			_, key, value, ok, err := batch.Next()
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if !ok {
				break
			}
			all = append(all, version{name, string(key), bytes.Clone(value)})
		}
	}
}

func inTable(t *testing.T, name string, data []byte) (all []version) {
	t.Helper()
	all, err := readTable(data)
	if err != nil {
		t.Logf("%s: cut short: %v", name, err) // the search for bytes looks at it all the same
	}
	for i := range all {
		all[i].where = name
	}
	return all
}

func readTable(data []byte) (all []version, err error) {
	fsys := vfs.NewMem()
	f, err := fsys.Create("table", vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(data); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	opened, err := fsys.Open("table")
	if err != nil {
		return nil, err
	}
	readable, err := sstable.NewSimpleReadable(opened)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	options := (&pebble.Options{}).MakeReaderOptions()
	r, err := sstable.NewReader(context.Background(), readable, options)
	if err != nil {
		return nil, errors.Join(err, readable.Close())
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for kv := it.First(); kv != nil; kv = it.Next() {
		value, _, err := kv.Value(nil)
		if err != nil {
			return all, err
		}
		all = append(all, version{key: string(kv.K.UserKey), value: bytes.Clone(value)})
	}
	return all, it.Error()
}
