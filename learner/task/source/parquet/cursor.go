package parquet

import (
	"bufio"
	"fmt"
	"io"
)

// A cursor reads the values of one column, page by page.
type cursor struct {
	column
	in       *bufio.Reader
	inflater inflater
	body     []byte // of the page, as it is in the file

	codec int32
	room  int64 // bytes of the chunk that have not been read
	rows  int64 // of the chunk, that no page has brought yet
	paged bool  // a data page of the chunk has come

	dictionary []string // values of the chunk's dictionary, as text

	left    int64   // rows of the page
	levels  *hybrid // 1: there is a value; nil: always
	indices *hybrid // into the dictionary; nil: decoder
	decoder decoder
}

// begin moves to the next chunk.
func (c *cursor) begin(file io.ReaderAt, k chunk) {
	section := io.NewSectionReader(file, k.start, k.length)
	if c.in == nil {
		c.in = bufio.NewReaderSize(section, 16<<10)
	}
	c.in.Reset(section)
	c.codec, c.room, c.rows, c.paged = k.codec, k.length, k.values, false
	c.dictionary, c.left = nil, 0
}

// next returns the value of the next row as text: empty where it is null.
func (c *cursor) next() (string, error) {
	text, err := c.value()
	if err != nil {
		return "", fmt.Errorf("column %q: %w", c.name, err)
	}
	return text, nil
}

func (c *cursor) value() (string, error) {
	for c.left == 0 {
		if err := c.page(); err != nil {
			return "", err
		}
	}
	c.left--
	if c.levels != nil {
		level, err := c.levels.next()
		if err != nil {
			return "", err
		}
		if level == 0 {
			return "", nil
		}
	}
	if c.indices != nil {
		i, err := c.indices.next()
		if err != nil {
			return "", err
		}
		if i >= uint64(len(c.dictionary)) {
			return "", fmt.Errorf("a value that is not in the dictionary")
		}
		return c.dictionary[i], nil
	}
	v, err := c.decoder.next()
	if err != nil {
		return "", err
	}
	return c.text(v), nil
}

// page reads the next page. It always takes bytes off the chunk, so that it cannot be called for ever.
func (c *cursor) page() error {
	if c.rows == 0 || c.room == 0 {
		return errShort
	}
	h, n, err := readHeader(c.in, c.room)
	if err != nil {
		return fmt.Errorf("page header: %w", err)
	}
	c.room -= n + int64(h.packed)
	if c.body, err = h.readBody(c.in, c.body); err != nil {
		return err
	}
	switch h.kind {
	case dataPage, dataPageV2:
		return c.data(h)
	case dictionaryPage:
		return c.words(h)
	}
	return nil // an index page, or one of a later version of the format, which readers pass over
}

// words reads the dictionary.
func (c *cursor) words(h pageHeader) error {
	if c.dictionary != nil || c.paged || h.encoding != encPlain && h.encoding != encPlainDictionary || c.physical == boolean {
		return fmt.Errorf("dictionary: %w", errThrift)
	}
	data, err := c.inflater.inflate(c.codec, c.body, int(h.size))
	if err != nil {
		return err
	}
	if h.values < 0 || h.values > mostWords || int(h.values) > len(data)/4 { // a value takes 4 bytes or more
		return fmt.Errorf("dictionary: %w", errSize)
	}
	d, err := newDecoder(&c.column, encPlain, data, 0)
	if err != nil {
		return err
	}
	c.dictionary = make([]string, h.values)
	for i := range c.dictionary {
		v, err := d.next()
		if err != nil {
			return fmt.Errorf("dictionary: %w", err)
		}
		c.dictionary[i] = c.text(v)
	}
	return nil
}

// data starts a page of values.
func (c *cursor) data(h pageHeader) error {
	if h.values < 0 || h.values > mostValues || int64(h.values) > c.rows {
		return errSize
	}
	var levels, data []byte
	var err error
	if h.kind == dataPageV2 {
		if h.repeated > 0 {
			return fmt.Errorf("levels: %w", errThrift)
		}
		levels, data = c.body[:h.level], c.body[h.level:]
		if !h.plain {
			data, err = c.inflater.inflate(c.codec, data, int(h.size-h.level))
		}
	} else if data, err = c.inflater.inflate(c.codec, c.body, int(h.size)); err == nil && c.repetition == 1 {
		if h.levelEncoding != encRLE {
			return fmt.Errorf("levels of encoding %d are not read", h.levelEncoding)
		}
		levels, data, err = levelsV1(data)
	}
	if err != nil {
		return err
	}
	c.left, c.paged = int64(h.values), true
	c.rows -= c.left
	c.levels, c.indices, c.decoder = nil, nil, nil
	if c.repetition == 1 {
		c.levels = &hybrid{in: levels, width: 1}
	}
	if h.encoding == encDictionary || h.encoding == encPlainDictionary {
		c.indices, err = newIndices(data)
	} else if len(data) == 0 {
		c.decoder = &plainBits{} // nulls alone
	} else {
		c.decoder, err = newDecoder(&c.column, h.encoding, data, uint64(h.values))
	}
	return err
}

// newIndices reads the width that is before the indices. A page of nulls alone may have neither.
func newIndices(data []byte) (*hybrid, error) {
	if len(data) == 0 {
		return &hybrid{}, nil
	}
	if data[0] > 32 {
		return nil, errSize
	}
	return &hybrid{in: data[1:], width: uint(data[0])}, nil
}
