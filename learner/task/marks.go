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

// longestNumber is the largest length of a number with its marks, in bytes. Longer texts are no numbers, which bounds
// the time to read one.
const longestNumber = 128

// validateMarks refuses marks that could be part of a number, and marks without effect.
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

// unmarked removes every occurrence of each mark in turn, then the blanks around the remaining text.
func unmarked(text string, marks []string) (string, error) {
	if len(text) > longestNumber {
		return "", fmt.Errorf("a number of more than %d bytes", longestNumber)
	}
	for _, m := range marks {
		text = strings.ReplaceAll(text, m, "")
	}
	return strings.TrimSpace(text), nil
}

// mostMarked returns a number that takes the longest to read: 1 after as many marks as fit.
func mostMarked(marks []string) string {
	all := strings.Join(marks, "")
	if all == "" {
		return "1"
	}
	return strings.Repeat(all, (longestNumber-1)/len(all)) + "1"
}
