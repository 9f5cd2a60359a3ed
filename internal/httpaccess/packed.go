package httpaccess

import (
	"net/http"
	"strings"
)

// Packed reports whether a request says that its body is compressed. What such a body unpacks to has no bound.
func Packed(q *http.Request) bool {
	for _, header := range q.Header.Values("Content-Encoding") {
		for coding := range strings.SplitSeq(header, ",") {
			if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
				return true
			}
		}
	}
	return false
}
