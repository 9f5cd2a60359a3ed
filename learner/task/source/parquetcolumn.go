package source

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// A kind is a way to read a column of a Parquet file.
type kind int

const (
	number kind = iota // integers, decimals in integers, floats, and booleans as 0 and 1
	word               // strings, integers, and booleans as false and true
	either             // what word takes, and floats, decimals, dates and timestamps too
)

func (k kind) wants() string {
	switch k {
	case number:
		return "a number (BOOLEAN, INT32, INT64, FLOAT or DOUBLE)"
	case word:
		return "a word (a string, INT32, INT64 or BOOLEAN)"
	}
	return "a string or a number (BOOLEAN, INT32, INT64, FLOAT or DOUBLE)"
}

// day is the unit of a date.
const day = 24 * time.Hour

// A parquetColumn reads the values of one flat column as text, as a csv file would have them.
type parquetColumn struct {
	*parquet.Column
	meta     *format.FileMetaData
	read     kind
	unsigned bool
	exponent string        // of a decimal
	unit     time.Duration // of a timestamp, or of a date the day; 0 of others

	parts  []stretch          // of the chunk that is being read, of which the first has begun
	pages  *parquet.FilePages // of the chunk, without those that are left out
	page   parquet.Page
	values parquet.ValueReader // of the page
	buffer []parquet.Value     // read from values and not handed out; their bytes are the page's
	full   [256]parquet.Value  // backs buffer
}

// chooseColumn finds a column by its name and checks its type.
func chooseColumn(f *parquet.File, w wanted) (*parquetColumn, error) {
	var found []*parquet.Column
	for _, c := range f.Root().Columns() {
		if c.Name() == w.name {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("column %q is not in the file", w.name)
	case 1:
	default:
		return nil, fmt.Errorf("column %q is in the file twice", w.name)
	}
	c := &parquetColumn{Column: found[0], meta: f.Metadata(), read: w.kind}
	if what := c.refused(); what != "" {
		return nil, fmt.Errorf("column %q: want %s, found %s", w.name, w.kind.wants(), what)
	}
	return c, nil
}

// refused returns what the column is, in words, if it cannot be read as it should be; else "".
func (c *parquetColumn) refused() string {
	switch {
	case !c.Leaf():
		return "a nested column"
	case c.Repeated():
		return "a repeated column"
	}
	var note fmt.Stringer
	text, decimal, other := false, false, false
	if l := c.Type().LogicalType(); l != nil {
		switch t := l.Value.(type) {
		case *format.NullType: // every value is null
			return ""
		case *format.StringType, *format.EnumType:
			note, text = t, true
		case *format.IntType:
			note, c.unsigned = t, !t.IsSigned
		case *format.DecimalType:
			note, decimal = t, true
			if t.Scale > 0 {
				c.exponent = "e-" + strconv.Itoa(int(t.Scale))
			}
			other = t.Scale < 0 || t.Scale > 18
		case *format.DateType:
			note, c.unit, other = t, day, c.read != either
		case *format.TimestampType:
			note, other = t, c.read != either || t.Unit.Value == nil
			if !other {
				c.unit = t.Unit.Value.Duration()
			}
		case nil:
		default:
			note, other = t, true
		}
	}
	ok := false
	switch c.Type().Kind() {
	case parquet.Boolean:
		ok = true
	case parquet.Int32, parquet.Int64:
		ok = !text && (!decimal || c.read != word)
	case parquet.Float, parquet.Double:
		ok = c.read != word
	case parquet.ByteArray:
		ok = c.read != number && !decimal
	}
	if c.unit > 0 { // of a date in whole days, or of a timestamp
		kind := c.Type().Kind()
		ok = kind == parquet.Int32 && c.unit == day || kind == parquet.Int64 && c.unit < day
	}
	if ok && !other {
		return ""
	}
	out := c.Type().Kind().String()
	if note != nil {
		name, _, _ := strings.Cut(note.String(), "(")
		out += " (" + name + ")"
	}
	return out
}

// text returns a value as a csv file would have it, empty where there is none. Numbers come back from it exactly.
func (c *parquetColumn) text(v parquet.Value) string {
	switch {
	case v.IsNull():
		return ""
	case v.Kind() == parquet.Boolean && c.read == number:
		if v.Boolean() {
			return "1"
		}
		return "0"
	case c.unsigned && v.Kind() == parquet.Int32:
		return strconv.FormatUint(uint64(v.Uint32()), 10)
	case c.unsigned && v.Kind() == parquet.Int64:
		return strconv.FormatUint(v.Uint64(), 10)
	}
	if c.unit > 0 {
		return c.moment(v)
	}
	switch v.Kind() {
	case parquet.Boolean:
		return strconv.FormatBool(v.Boolean())
	case parquet.Int32:
		return strconv.FormatInt(int64(v.Int32()), 10) + c.exponent
	case parquet.Int64:
		return strconv.FormatInt(v.Int64(), 10) + c.exponent
	case parquet.Float:
		return strconv.FormatFloat(float64(v.Float()), 'g', -1, 64)
	case parquet.Double:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	}
	return string(v.ByteArray())
}

// moment returns a date, or a date with its time in UTC.
func (c *parquetColumn) moment(v parquet.Value) string {
	if v.Kind() == parquet.Int32 {
		return time.Unix(0, 0).UTC().AddDate(0, 0, int(v.Int32())).Format(time.DateOnly)
	}
	perSecond := int64(time.Second / c.unit)
	seconds, part := v.Int64()/perSecond, v.Int64()%perSecond
	return time.Unix(seconds, part*int64(c.unit)).UTC().Format("2006-01-02T15:04:05.999999999")
}

// begin moves to the chunk of a row group.
func (c *parquetColumn) begin(in io.ReaderAt, g parquet.RowGroup, number int, most int64) error {
	return c.guarded(func() error {
		if err := c.leave(); err != nil || g.NumRows() == 0 {
			return err
		}
		parts, holes, err := pagesOf(in, c.chunk(number), g.NumRows(), most)
		if err != nil {
			return err
		}
		if c.parts = parts; len(holes) > 0 {
			in = view{in, holes}
		}
		c.pages = g.ColumnChunks()[c.Index()].(*parquet.FileColumnChunk).PagesFrom(in)
		return nil
	})
}

// next returns the value of the next row, or reports that its page is too large.
func (c *parquetColumn) next() (text string, omitted bool, err error) {
	for c.parts[0].rows == 0 {
		c.parts = c.parts[1:]
	}
	c.parts[0].rows--
	if c.parts[0].omitted {
		return "", true, nil
	}
	if len(c.buffer) == 0 {
		if err := c.guarded(c.fill); err != nil {
			return "", false, err
		}
	}
	v := c.buffer[0]
	c.buffer = c.buffer[1:]
	return c.text(v), false, nil
}

// fill reads values into buffer.
func (c *parquetColumn) fill() error {
	for {
		if c.values == nil {
			page, err := c.pages.ReadPage()
			if err != nil {
				return reason(err)
			}
			c.page, c.values = page, page.Values()
		}
		n, err := c.values.ReadValues(c.full[:])
		if err != nil && err != io.EOF {
			return reason(err)
		}
		if c.buffer = c.full[:n]; n > 0 {
			return nil
		}
		if err == nil {
			return errDamaged
		}
		parquet.Release(c.page)
		c.page, c.values = nil, nil
	}
}

// end leaves the chunk that is being read.
func (c *parquetColumn) end() error { return c.guarded(c.leave) }

func (c *parquetColumn) leave() error {
	if c.pages == nil {
		return nil
	}
	page, pages := c.page, c.pages
	c.pages, c.page, c.values, c.buffer = nil, nil, nil, nil
	if page != nil {
		parquet.Release(page)
	}
	return reason(pages.Close())
}

// guarded adds the column to errors.
func (c *parquetColumn) guarded(f func() error) error {
	if err := guarded(f); err != nil {
		return fmt.Errorf("column %q: %w", c.Name(), err)
	}
	return nil
}
