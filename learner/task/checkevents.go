package task

import (
	"fmt"
	"strings"
)

func (s *Spec) checkEvents() error {
	e := s.Events
	if err := oneOf("events.format", e.Format, LIBSVM, CSV, JSONL, IDX, Parquet); err != nil {
		return err
	}
	if e.MaxLine < 1 || e.MaxLine > maxLineLimit {
		return refuse("events.max_line", e.MaxLine, "a number of bytes from 1 to %d", maxLineLimit)
	}
	for i, p := range e.Skip {
		if p == "" || strings.TrimSpace(p) != p {
			return refuse(fmt.Sprintf("events.skip.%d", i), p, "text without blanks around it")
		}
	}
	if (e.Format == IDX || e.Format == Parquet) && len(e.Skip) > 0 {
		return refuse("events.skip", e.Skip, "nothing: %s has no lines", e.Format)
	}
	if e.Format != CSV {
		switch {
		case e.Header:
			return refuse("events.header", e.Header, "false: only csv has a header")
		case len(e.Columns) > 0:
			return refuse("events.columns", e.Columns, "nothing: only csv has columns by position")
		case e.Separator != "":
			return refuse("events.separator", e.Separator, "nothing: only csv has separators")
		}
		return nil
	}
	if len(e.Separator) != 1 || strings.ContainsAny(e.Separator, " \"\r\n\x00") || e.Separator[0] >= 0x80 {
		return refuse("events.separator", e.Separator, "one ASCII character, not a blank, a quote or a line break")
	}
	if e.Header == (len(e.Columns) > 0) {
		return refuse("events.columns", e.Columns, "the names of the columns, or events.header: true, and not both")
	}
	for i, c := range e.Columns {
		if err := checkColumnName(fmt.Sprintf("events.columns.%d", i), c, e.Columns[:i]); err != nil {
			return err
		}
	}
	return nil
}
