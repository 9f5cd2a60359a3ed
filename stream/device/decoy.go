package device

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/object"
)

// longNumber has more digits than a float64, which takes the longest to read.
var longNumber = "0." + strings.Repeat("1234567890", 4)

// moreBytes bounds the bytes that an event of a person may have for members that are passed over, on average.
const moreBytes = 256

// decoyOf returns an event of a declared task with every column there, and all digits and words of each.
func decoyOf(spec *task.Spec) []byte {
	var out bytes.Buffer
	if v := spec.Features.Vector; v != nil {
		out.WriteString(`{"value":[`)
		for i := range v.Dimension {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteString(longNumber)
		}
		out.WriteString(`],"label":1}`)
		return out.Bytes()
	}
	schema := spec.Schema()
	out.WriteByte('{')
	for _, name := range append(schema.Columns, schema.Label) {
		quoted, _ := json.Marshal(name)
		out.Write(quoted)
		value := longNumber
		if n := longestText(spec, name); n > 0 {
			value = `"` + strings.Repeat("x", n) + `"`
		}
		out.WriteString(":" + value + ",")
	}
	more := min(moreBytes, spec.Events.MaxLine-out.Len()-len(`"":0}`))
	out.WriteString(strings.Repeat(`"x":0,`, max(0, more)/len(`"x":0,`)) + `"":0}`)
	return out.Bytes()
}

// longestText returns the most characters of a text in a column that count, 0 where it is none, and for all columns
// together at most half of the longest line.
func longestText(spec *task.Spec, name string) int {
	most := 0
	for _, c := range spec.Features.Columns {
		if c.Name == name {
			most = max(most, task.LongestWord*c.Words)
		}
	}
	return min(most, spec.Events.MaxLine/2/max(1, len(spec.Features.Columns)))
}

// work returns the longest work that the events of one key can cost on a tick, beside the report about their examples:
// a gateway's largest body, in the pieces that take the longest to parse, with an event that fails to fit only at its
// end.
func (p *parser) work() func() {
	if p.items > 0 {
		all := slices.Repeat([]Event{eventOf(p.decoy, nil)}, p.items)
		return func() { _, _ = p.person(all) }
	}
	body := p.decoyBody()
	features := p.features.Decoy()
	event := EventFunc(func() (event []byte, err error) {
		members, ok := object.Members(body)
		if !ok {
			return nil, errObject
		}
		for name, value := range members {
			if name == "event" {
				event = value
			}
		}
		return event, nil
	})
	return func() {
		_, _ = p.one([]Event{event})
		_, _ = p.row(p.decoy)
		_ = p.features.Map(features, new(convex.Example)) // also where the decoy's words are in no vocabulary
	}
}

// decoyBody returns the body of a gateway whose one event takes longest to parse. The event has the greatest length, is
// filled with members that are skipped, which parse slower than any other filling, and is followed by blanks.
func (p *parser) decoyBody() []byte {
	most := int(p.most) - len(`{"key":"a","event":}`)
	if p.agreement.Spec.Features.Vector == nil {
		most = min(most, p.agreement.Spec.Events.MaxLine)
	}
	event := bytes.Clone(bytes.TrimSuffix(p.decoy, []byte("}")))
	for len(event)+len(`,"x":0}`) <= most && p.agreement.Spec.Features.Vector == nil {
		event = append(event, `,"x":0`...)
	}
	body := append(append([]byte(`{"key":"a","event":`), event...), '}')
	for len(body) < int(p.most)-1 {
		body = append(body, ' ')
	}
	return append(body, '}')
}
