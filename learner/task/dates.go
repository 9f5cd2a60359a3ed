package task

import (
	"cmp"
	"errors"
	"time"
)

// A Part is a number taken from a date, or from a date with a time.
type Part string

// The parts.
const (
	Year    Part = "year"
	Month   Part = "month"   // 1 to 12
	Day     Part = "day"     // of the month, 1 to 31
	Weekday Part = "weekday" // 1, Monday, to 7
	Hour    Part = "hour"    // 0 to 24, minutes in it: 13:30 is 13.5
)

// allParts returns all parts.
func allParts() []Part { return []Part{Year, Month, Day, Weekday, Hour} }

func (c *Column) validatePart(path string) error {
	switch {
	case c.Over != "":
		return c.validateOver(path)
	case c.Part == "" && c.Field != "":
		return refuse(path+".field", c.Field, "nothing without part or over: column is the field")
	case c.Part == "":
		return nil
	case c.Kind != Numeric && c.Kind != Bucketed && c.Kind != Hats:
		return refuse(path+".part", c.Part, "nothing for kind %s", c.Kind)
	case len(c.Marks) > 0:
		return refuse(path+".marks", c.Marks, "nothing with part")
	case c.Field == "":
		return refuse(path+".field", "", "the field that holds the date: column is a name of your own")
	}
	if err := validateColumnName(path+".field", c.Field, nil); err != nil {
		return err
	}
	return oneOf(path+".part", c.Part, allParts()...)
}

// validateOver checks a ratio.
func (c *Column) validateOver(path string) error {
	switch {
	case c.Kind != Numeric && c.Kind != Bucketed && c.Kind != Hats:
		return refuse(path+".over", c.Over, "nothing for kind %s", c.Kind)
	case c.Part != "":
		return refuse(path+".over", c.Over, "nothing with part")
	case c.Field == "":
		return refuse(path+".field", "", "the field that is divided: column is a name of your own")
	}
	if err := validateColumnName(path+".field", c.Field, nil); err != nil {
		return err
	}
	return validateColumnName(path+".over", c.Over, []string{c.Field})
}

// field returns the field that a source is read from, or the name of a group.
func (s *Source) field() string { return cmp.Or(s.Field, s.Column) }

// longestDate is the largest length of a date in bytes. Longer texts are no dates, which bounds the time to read one.
const longestDate = 48

// slowestDate is a date that takes the longest to read.
const slowestDate = "2024-12-31T23:59:59.9999999999999999999999+00:00"

var errNotDate = errors.New("not a date: want YYYY-MM-DD, or YYYY-MM-DDThh:mm:ss")

// datePart returns a part of a date: YYYY-MM-DD, which T or one blank and a time may follow: hh:mm, hh:mm:ss or
// hh:mm:ss.f, and then Z, +hh:mm, -hh:mm, +hhmm or -hhmm. The part is read as it is written: the zone is passed over.
// The hour is missing if there is no time.
func datePart(text string, part Part) (x float64, missing bool, err error) {
	if len(text) > longestDate {
		return 0, false, errNotDate
	}
	r := dateReader{rest: text}
	year, month, day := r.number(4, 0, 9999), 0, 0
	r.one("-")
	month = r.number(2, 1, 12)
	r.one("-")
	day = r.number(2, 1, 31)
	hour, minute, timed := 0, 0, r.rest != ""
	if timed {
		r.one("T ")
		hour = r.number(2, 0, 23)
		r.one(":")
		minute = r.number(2, 0, 59)
		r.seconds()
		r.zone()
	}
	date := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if r.failed || r.rest != "" || date.Day() != day {
		return 0, false, errNotDate
	}
	switch part {
	case Year:
		return float64(year), false, nil
	case Month:
		return float64(month), false, nil
	case Day:
		return float64(day), false, nil
	case Weekday:
		return float64((int(date.Weekday())+6)%7 + 1), false, nil
	}
	return float64(60*hour+minute) / 60, !timed, nil
}

// PartOf returns a part of a date, read as a column with that part reads it, and whether the date lacks it.
func PartOf(text string, part Part) (x float64, missing bool, err error) { return datePart(text, part) }

// A dateReader reads a date from its beginning.
type dateReader struct {
	rest   string
	failed bool
}

// one reads one of the characters.
func (r *dateReader) one(of string) byte {
	for i := range len(of) {
		if r.rest != "" && r.rest[0] == of[i] {
			r.rest = r.rest[1:]
			return of[i]
		}
	}
	r.failed = true
	return 0
}

// number reads a number of so many digits in a range.
func (r *dateReader) number(digits, low, high int) int {
	n := 0
	for range digits {
		n = 10*n + int(r.one("0123456789")) - '0'
	}
	r.failed = r.failed || n < low || n > high
	return n
}

// next reports whether the rest begins with one of the characters.
func (r *dateReader) next(of string) bool {
	ahead := *r
	return ahead.one(of) != 0
}

// seconds reads optional seconds with an optional fraction.
func (r *dateReader) seconds() {
	if !r.next(":") {
		return
	}
	r.one(":")
	r.number(2, 0, 60) // a leap second
	if !r.next(".") {
		return
	}
	r.one(".")
	r.number(1, 0, 9)
	for r.next("0123456789") {
		r.number(1, 0, 9)
	}
}

// zone reads an optional zone.
func (r *dateReader) zone() {
	switch {
	case r.rest == "":
	case r.next("Z"):
		r.one("Z")
	default:
		r.one("+-")
		r.number(2, 0, 23)
		if r.next(":") {
			r.one(":")
		}
		r.number(2, 0, 59)
	}
}
