package task

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Of a column of kind text.
const (
	defaultWords = 256
	maxWords     = 1024
)

// LongestWord is the most characters of a word in a text that count. For each word that may count as many characters of
// the text are read.
const LongestWord = 32

func (c *Column) validateText(path string) error {
	if c.Words < 1 || c.Words > maxWords {
		return refuse(path+".words", c.Words, "a whole number from 1 to %d", maxWords)
	}
	return nil
}

// inWord reports whether a character is part of a word: a letter, a mark on one, or a digit.
func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r) }

// setWords appends the coordinates of the buckets that the words of a text fall into, each bucket once and all as
// large, so that their norm is 1.
func (w *writer) setWords(in *input, text string) {
	from := len(w.index)
	in.eachWord(text, func(bucket int32) { w.index = append(w.index, int32(in.first)+bucket) })
	slices.Sort(w.index[from:])
	set := slices.Compact(w.index[from:])
	w.index = w.index[:from+len(set)]
	value := 1 / math.Sqrt(float64(len(set)))
	for _, at := range set {
		v := value
		if w.scales != nil {
			v *= w.scales[at]
		}
		w.value = append(w.value, v)
	}
}

// wordInputs sets the same coordinates, without scales, in dst, which is all zero.
func (in *input) wordInputs(text string, dst []float64) {
	n := 0.0
	in.eachWord(text, func(bucket int32) {
		n += 1 - dst[bucket]
		dst[bucket] = 1
	})
	for i := range dst {
		dst[i] /= math.Sqrt(max(n, 1))
	}
}

// eachWord yields the buckets of the words of a text. Words are runs of letters, marks and digits, in lower case. Of
// the text the first LongestWord characters for each word that may count are read; of them the first in.Words words
// count, each by its first LongestWord characters.
func (in *input) eachWord(text string, yield func(bucket int32)) {
	var buffer [LongestWord * utf8.UTFMax]byte
	word, length, words := buffer[:0], 0, 0
	end := func() {
		if length > 0 && words < in.Words {
			yield(int32(murmur3(word, in.Seed) % uint32(in.Buckets)))
			words++
		}
		word, length = buffer[:0], 0
	}
	left := LongestWord * in.Words
	for _, r := range text {
		if left--; left < 0 {
			break
		}
		if !inWord(r) {
			end()
			continue
		}
		if length++; length <= LongestWord {
			word = utf8.AppendRune(word, unicode.ToLower(r))
		}
	}
	end()
}

// lastDigit is the character of words that takes the longest: the last one of the last table that is looked into.
const lastDigit = "\U0001FBF9"

// longestText returns a text that takes the longest to map: as many words as count, in as many characters as are read.
func longestText(words int) string {
	var out strings.Builder
	for i := range words {
		number := strconv.Itoa(i)
		out.WriteString(number + strings.Repeat(lastDigit, LongestWord-1-len(number)) + " ")
	}
	return out.String()
}
