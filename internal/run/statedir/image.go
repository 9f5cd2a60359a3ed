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

// AskBackup requests an image. A learner answers it on its control socket, not on an HTTP port.
const AskBackup Question = "backup"

// What follows in an image. It begins with the length of the checkpoint, 8 bytes, and the checkpoint; every entry has a
// mark before it.
const (
	imageEnd     = 0
	imageEntry   = 1
	imageArchive = 2 // no more entries can be read, for they are lost: and the text of why
	imageError   = 3 // the same for another reason
	// before what is kept of a round, behind the entries: its number, and row and model with their lengths
	imageKept = 4
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
	// a bufio.Writer keeps its first error until Flush
	out.Write(binary.BigEndian.AppendUint64(nil, uint64(len(checkpoint))))
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
	for k, err := range keptOf(ctx, store, c.Cursor.Round) {
		if err != nil {
			out.WriteByte(imageError)
			out.WriteString(err.Error())
			return out.Flush()
		}
		out.WriteByte(imageKept)
		out.Write(binary.BigEndian.AppendUint64(nil, k.Round))
		for _, part := range [][]byte{k.Row, k.Model} {
			out.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
			if _, err := out.Write(part); err != nil {
				return err
			}
		}
	}
	out.WriteByte(imageEnd)
	return out.Flush()
}

// keptOf yields what a store keeps of rounds up to the last.
func keptOf(ctx context.Context, store state.Store, last uint64) iter.Seq2[state.Kept, error] {
	return func(yield func(state.Kept, error) bool) {
		rows, err := store.Rows(ctx, 0)
		if err != nil {
			yield(state.Kept{}, err)
			return
		}
		for _, k := range rows {
			if k.Round > last {
				return
			}
			k.Model, err = store.Model(ctx, k.Round)
			if !yield(k, err) || err != nil {
				return
			}
		}
	}
}

// readImage reads what writeImage wrote. The entries can be read once, and then what is kept, once.
func readImage(r io.Reader) (c state.Checkpoint, entries iter.Seq2[state.Entry, error], kept iter.Seq2[state.Kept,
	error], err error) {
	in := bufio.NewReader(r)
	var head [8]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return c, nil, nil, fmt.Errorf("the learner's answer: %w", err)
	}
	n := binary.BigEndian.Uint64(head[:])
	if n > 8*state.MaxBlobBytes {
		return c, nil, nil, fmt.Errorf("the learner's answer: a checkpoint of %d bytes", n)
	}
	data, err := io.ReadAll(io.LimitReader(in, int64(n)))
	if err == nil {
		err = c.UnmarshalBinary(data)
	}
	if err != nil {
		return c, nil, nil, fmt.Errorf("the learner's answer: %w", err)
	}
	return c, partsOf(in, readImageEntry), partsOf(in, readImageKept), nil
}

// partsOf yields what read reads, up to the end of it or the first error.
func partsOf[T any](in *bufio.Reader, read func(*bufio.Reader) (one T, more bool, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			one, more, err := read(in)
			if err != nil {
				yield(one, fmt.Errorf("the learner's answer: %w", err))
				return
			}
			if !more || !yield(one, nil) {
				return
			}
		}
	}
}

func readImageKept(in *bufio.Reader) (k state.Kept, more bool, err error) {
	mark, err := in.ReadByte()
	switch {
	case err != nil:
		return k, false, errors.Join(io.ErrUnexpectedEOF, err)
	case mark == imageEnd:
		return k, false, nil
	case mark == imageError:
		text, _ := io.ReadAll(io.LimitReader(in, 4096))
		return k, false, errors.New(string(text))
	case mark != imageKept:
		return k, false, fmt.Errorf("mark %d before what is kept of a round", mark)
	}
	var word [8]byte
	if _, err := io.ReadFull(in, word[:]); err != nil {
		return k, false, err
	}
	k.Round = binary.BigEndian.Uint64(word[:])
	for _, part := range []*[]byte{&k.Row, &k.Model} {
		if _, err := io.ReadFull(in, word[:]); err != nil {
			return k, false, err
		}
		n := binary.BigEndian.Uint64(word[:])
		if n > state.MaxBlobBytes {
			return k, false, fmt.Errorf("%d bytes are kept of round %d", n, k.Round)
		}
		if *part, err = io.ReadAll(io.LimitReader(in, int64(n))); err != nil {
			return k, false, err
		}
		if uint64(len(*part)) != n {
			return k, false, io.ErrUnexpectedEOF
		}
	}
	return k, true, nil
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

// A reader is called with what a state folder has committed: the checkpoint, all entries of its ledger, and then what
// is kept of its rounds, each to be read once.
type reader func(c state.Checkpoint, entries iter.Seq2[state.Entry, error], kept iter.Seq2[state.Kept, error]) error

// Copy calls with what a state folder has committed, also while a learner holds it. Nothing is verified but the
// checkpoint and the newest entries; state.Checkpoint.VerifyLedger does the rest.
func Copy(ctx context.Context, where Where, use reader) error {
	return consult(ctx, where, AskBackup, func(r io.Reader) error {
		c, entries, kept, err := readImage(r)
		if err != nil {
			return err
		}
		return use(c, entries, kept)
	}, func(store state.Store) error {
		c, err := store.Load(ctx)
		if err != nil {
			return err
		}
		return use(c, store.Ledger(ctx), keptOf(ctx, store, c.Cursor.Round))
	})
}
