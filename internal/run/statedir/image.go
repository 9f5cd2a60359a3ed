package statedir

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/panlearn/panlearn/state"
)

// AskBackup is answered by the control socket of a learner, not on an HTTP port: with an image.
const AskBackup Question = "backup"

// What follows in an image. It begins with the length of the checkpoint, 8 bytes, and the checkpoint; every entry has a mark before it.
const (
	imageEnd     = 0
	imageEntry   = 1
	imageArchive = 2 // no more entries can be read, for they are lost: and the text of why
	imageError   = 3 // the same for another reason
)

// writeImage writes what was committed, byte for byte, in constant memory.
func writeImage(ctx context.Context, store state.Store, w io.Writer) error {
	c, err := store.Load(ctx)
	if err != nil {
		return err
	}
	checkpoint, err := c.MarshalBinary()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	out.Write(binary.BigEndian.AppendUint64(nil, uint64(len(checkpoint)))) // a bufio.Writer keeps its first error until Flush
	out.Write(checkpoint)
	for e, err := range upTo(ctx, store, c.Ledger.Head.Length) {
		var line []byte
		if err == nil {
			line, err = e.MarshalBinary()
		}
		if err != nil {
			mark := byte(imageError)
			if errors.Is(err, state.ErrArchive) {
				mark = imageArchive
			}
			out.WriteByte(mark)
			out.WriteString(err.Error())
			return out.Flush()
		}
		out.WriteByte(imageEntry)
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	out.WriteByte(imageEnd)
	return out.Flush()
}

// readImage reads what writeImage wrote. The entries can be read once.
func readImage(r io.Reader) (c state.Checkpoint, entries iter.Seq2[state.Entry, error], err error) {
	in := bufio.NewReader(r)
	var head [8]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return c, nil, fmt.Errorf("the learner's answer: %w", err)
	}
	n := binary.BigEndian.Uint64(head[:])
	if n > 8*state.MaxBlobBytes {
		return c, nil, fmt.Errorf("the learner's answer: a checkpoint of %d bytes", n)
	}
	data, err := io.ReadAll(io.LimitReader(in, int64(n)))
	if err == nil {
		err = c.UnmarshalBinary(data)
	}
	if err != nil {
		return c, nil, fmt.Errorf("the learner's answer: %w", err)
	}
	return c, func(yield func(state.Entry, error) bool) {
		for {
			e, more, err := readImageEntry(in)
			if err != nil {
				yield(e, fmt.Errorf("the learner's answer: %w", err))
				return
			}
			if !more || !yield(e, nil) {
				return
			}
		}
	}, nil
}

func readImageEntry(in *bufio.Reader) (e state.Entry, more bool, err error) {
	mark, err := in.ReadByte()
	switch {
	case err != nil:
		return e, false, errors.Join(io.ErrUnexpectedEOF, err)
	case mark == imageEnd:
		return e, false, nil
	case mark == imageArchive, mark == imageError:
		text, _ := io.ReadAll(io.LimitReader(in, 4096))
		if mark == imageError {
			return e, false, errors.New(string(text))
		}
		return e, false, archiveError(text)
	case mark != imageEntry:
		return e, false, fmt.Errorf("mark %d before an entry", mark)
	}
	var line [state.EntryBytes]byte
	if _, err := io.ReadFull(in, line[:]); err != nil {
		return e, false, err
	}
	return e, true, e.UnmarshalBinary(line[:])
}

// An archiveError is one that wraps state.ErrArchive, in the words of another process.
type archiveError string

func (e archiveError) Error() string { return string(e) }

func (archiveError) Unwrap() error { return state.ErrArchive }

// Copy calls with what a state folder has committed, also while a learner holds it: the checkpoint, and all entries of its ledger,
// to be read once. Nothing is verified but the checkpoint and the newest entries; state.Checkpoint.VerifyLedger does the rest.
func Copy(ctx context.Context, where Where, use func(c state.Checkpoint, entries iter.Seq2[state.Entry, error]) error) error {
	return consult(ctx, where, AskBackup, func(r io.Reader) error {
		c, entries, err := readImage(r)
		if err != nil {
			return err
		}
		return use(c, entries)
	}, func(store state.Store) error {
		c, err := store.Load(ctx)
		if err != nil {
			return err
		}
		return use(c, store.Ledger(ctx))
	})
}
