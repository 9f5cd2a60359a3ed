package task

import (
	"fmt"
	"slices"
	"strings"
)

// Most marks of a column, and the most bytes of one.
const (
	mostMarks   = 8
	longestMark = 16
)

// longestNumber is the most bytes of a number, with its marks; a longer text is none, so that none takes long to read.
const longestNumber = 128

// validateMarks refuses what could be part of a number, or makes no difference.
func validateMarks(path string, marks []string) error {
	if len(marks) > mostMarks {
		return refuse(path+".marks", fmt.Sprintf("%d texts", len(marks)), "at most %d", mostMarks)
	}
	for i, m := range marks {
		if m == "" || len(m) > longestMark || strings.ContainsAny(m, "0123456789.+-") || m == "e" || m == "E" {
			return refuse(fmt.Sprintf("%s.marks.%d", path, i), m,
				"a text of 1 to %d bytes without digits, points and signs, and not e or E", longestMark)
		}
		if slices.Contains(marks[:i], m) {
			return refuse(fmt.Sprintf("%s.marks.%d", path, i), m, "a text that is not in the list already")
		}
	}
	return nil
}

// unmarked returns the text without the marks, one after another, wherever they are in it, and without the blanks
// around what is left.
func unmarked(text string, marks []string) (string, error) {
	if len(text) > longestNumber {
		return "", fmt.Errorf("a number of more than %d bytes", longestNumber)
	}
	for _, m := range marks {
		text = strings.ReplaceAll(text, m, "")
	}
	return strings.TrimSpace(text), nil
}

// mostMarked returns a number that takes the longest to read: 1, and before it as many
// marks as there may be.
func mostMarked(marks []string) string {
	all := strings.Join(marks, "")
	if all == "" {
		return "1"
	}
	return strings.Repeat(all, (longestNumber-1)/len(all)) + "1"
}
