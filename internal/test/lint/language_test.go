package lint

import (
	"regexp"
	"strings"
	"testing"
)

// Forms of comments that make a reader guess. A doc comment begins with the name and a verb: what the function returns or
// does, what the value holds, in which unit.
var (
	riddle = regexp.MustCompile(`^(?:An? |The )?[\w.]+ (?:(?:is|are) (?:what|how|whether|when|where|whom?|whose|why|which|those|that)\b|says?\b)`)
	clumsy = regexp.MustCompile(`(?i)\b(?:(?:is|are|was|were) (?:that|those) (?:of|which)|that of which|those of which|whoever|anew|in place of|but for)\b`)
)

// TestCommentsStandAlone: no comment begins like "x is what ..." or "x says ...", or has words that few readers of English know.
func TestCommentsStandAlone(t *testing.T) {
	for _, f := range sources(t) {
		if f.generated() {
			continue
		}
		for _, group := range f.ast.Comments {
			text := strings.Join(strings.Fields(group.Text()), " ")
			if form := riddle.FindString(text); form != "" {
				t.Errorf("%s: %q: begin with a verb that says what it does, returns or holds", f.fset.Position(group.Pos()), form)
			} else if form := clumsy.FindString(text); form != "" {
				t.Errorf("%s: %q: write it plainly", f.fset.Position(group.Pos()), form)
			}
		}
	}
}
