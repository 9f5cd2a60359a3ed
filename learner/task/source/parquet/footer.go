package parquet

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Limits of a file. They are far above what writers make and keep the memory that a hostile footer costs in bounds.
const (
	mostFooter   = 64 << 20
	mostElements = 1 << 17 // of the schema
	mostGroups   = 1 << 17
	tail         = 8 // bytes after the footer: its length and the magic number
)

const magic = "PAR1"

// A footer is what the file says of itself, of the chosen columns alone.
type footer struct {
	columns []column
	groups  []group
}

// A group is a row group: the next rows of the file.
type group struct {
	rows   int64
	chunks []chunk // of the chosen columns
}

// A chunk is where the values of one column in one group lie.
type chunk struct {
	codec  int32
	values int64
	start  int64 // offset of the first page
	length int64 // bytes of all pages
}

// readFooter reads the footer and checks the columns against it.
func readFooter(r io.ReaderAt, size int64, want []Column) (*footer, error) {
	if size < int64(len(magic))+tail {
		return nil, errors.New("not a Parquet file: too short")
	}
	var head, end [tail]byte
	if _, err := r.ReadAt(head[:len(magic)], 0); err != nil {
		return nil, noEOF(err)
	}
	if _, err := r.ReadAt(end[:], size-tail); err != nil && err != io.EOF {
		return nil, err
	}
	if string(end[4:]) == "PARE" || string(head[:4]) == "PARE" {
		return nil, errors.New("the file is encrypted")
	}
	if string(head[:4]) != magic || string(end[4:]) != magic {
		return nil, errors.New("not a Parquet file, or not the whole of one: it does not begin and end with " + magic)
	}
	length := int64(binary.LittleEndian.Uint32(end[:4]))
	if length > mostFooter || length > size-tail-int64(len(magic)) {
		return nil, fmt.Errorf("footer: %w", errSize)
	}
	body := make([]byte, length)
	if _, err := r.ReadAt(body, size-tail-length); err != nil {
		return nil, fmt.Errorf("footer: %w", noEOF(err))
	}
	c := &compact{in: bufio.NewReader(bytes.NewReader(body)), left: length}
	p := footerParser{compact: c, want: want, end: size - tail - length}
	if err := p.parse(); err != nil {
		return nil, err
	}
	return &p.footer, nil
}

// footerParser reads FileMetaData. A refusal is what the caller should know about; every other error is damage.
type footerParser struct {
	*compact
	want    []Column
	end     int64 // of the pages
	footer  footer
	refusal error
	chosen  map[int64][]int // leaf to positions in want
	leaves  int64
	rows    int64
}

func (p *footerParser) refuse(err error) {
	if p.refusal == nil && p.err == nil {
		p.refusal = err
	}
	p.fail(err)
}

func (p *footerParser) parse() error {
	rows := int64(-1)
	p.fields(typeStruct, func(id int16, kind byte) {
		switch id {
		case 2:
			p.schema(kind)
		case 3:
			rows = p.integer(kind)
		case 4:
			if p.chosen == nil || p.footer.groups != nil {
				p.fail(errThrift)
			}
			p.items(kind, func(i int64, kind byte) {
				if i == mostGroups {
					p.fail(errSize)
				}
				p.group(kind)
			})
		case 8:
			p.refuse(errors.New("columns of the file are encrypted"))
		default:
			p.skip(kind)
		}
	})
	switch {
	case p.refusal != nil:
		return p.refusal
	case p.err != nil:
		return fmt.Errorf("footer: %w", p.err)
	case p.chosen == nil || rows != p.rows:
		return fmt.Errorf("footer: %w", errThrift)
	}
	return nil
}

func (p *footerParser) schema(kind byte) {
	if p.chosen != nil {
		p.fail(errThrift)
	}
	var elements []element
	p.items(kind, func(i int64, kind byte) {
		if i == mostElements {
			p.fail(errSize)
		}
		elements = append(elements, p.element(kind))
	})
	if p.err != nil {
		return
	}
	top, leaves, err := topLevel(elements)
	if err != nil {
		p.fail(err)
		return
	}
	p.leaves, p.chosen = leaves, make(map[int64][]int)
	for i, w := range p.want {
		c, leaf, err := choose(top, w)
		if err != nil {
			p.refuse(err)
			return
		}
		p.footer.columns = append(p.footer.columns, c)
		p.chosen[leaf] = append(p.chosen[leaf], i)
	}
}

func (p *footerParser) group(kind byte) {
	g := group{rows: -1, chunks: make([]chunk, len(p.want))}
	var leaves int64
	p.fields(kind, func(id int16, kind byte) {
		switch id {
		case 1:
			p.items(kind, func(i int64, kind byte) {
				leaves = i + 1
				at := p.chosen[i]
				if len(at) == 0 {
					p.skipItem(kind, 0)
					return
				}
				k := p.chunk(kind, p.footer.columns[at[0]])
				for _, column := range at {
					g.chunks[column] = k
				}
			})
		case 3:
			g.rows = p.integer(kind)
		default:
			p.skip(kind)
		}
	})
	if p.err != nil {
		return
	}
	if leaves != p.leaves || g.rows < 0 || p.rows+g.rows < p.rows {
		p.fail(errThrift)
		return
	}
	for _, c := range g.chunks {
		if c.values != g.rows {
			p.fail(errThrift)
		}
	}
	p.rows += g.rows
	p.footer.groups = append(p.footer.groups, g)
}

func (p *footerParser) chunk(kind byte, of column) chunk {
	out := chunk{values: -1, length: -1}
	var pages, dictionary int64
	p.fields(kind, func(id int16, kind byte) {
		switch id {
		case 1:
			if p.text(kind) != "" {
				p.refuse(fmt.Errorf("column %q lies in another file", of.name))
			}
		case 3:
			p.fields(kind, func(id int16, kind byte) {
				switch id {
				case 1:
					if p.int32(kind) != of.physical {
						p.fail(errThrift)
					}
				case 4:
					out.codec = p.int32(kind)
				case 5:
					out.values = p.integer(kind)
				case 7:
					out.length = p.integer(kind)
				case 9:
					pages = p.integer(kind)
				case 11:
					dictionary = p.integer(kind)
				default:
					p.skip(kind)
				}
			})
		case 8:
			p.refuse(fmt.Errorf("column %q is encrypted", of.name))
		default:
			p.skip(kind)
		}
	})
	out.start = pages
	if dictionary > 0 && dictionary < pages {
		out.start = dictionary
	}
	if p.err == nil && out.values > 0 && (out.length < 0 || out.start < int64(len(magic)) || out.start > p.end || out.length > p.end-out.start) {
		p.fail(errSize)
	}
	if _, known := codecs[out.codec]; !known {
		p.refuse(fmt.Errorf("column %q is compressed by %s: want none, snappy, gzip or zstd", of.name, codecName(out.codec)))
	}
	return out
}
