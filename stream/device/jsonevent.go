package device

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/object"
	"github.com/panlearn/panlearn/stream/device/consent"
)

// An Event holds one row of a user, as a JSON object: applications submit it. Whatever it holds, it is an Event and
// takes part: one that is no object, or not as the task declares, reports the zero vector.
type Event struct {
	text func() ([]byte, error)
}

// EventOf makes an Event of the JSON text of an object, or of a map of its members. It never fails, and nothing that an
// application could act on depends on what the event holds: content must not decide who takes part. An object has a
// member for each column that the task declares, and for its label; of a task with a vector the members value, label
// and, where not all values are given, index. Members that the task does not name are passed over, and null is a value
// that is missing. A whole number beyond 2^53 does not fit, since other languages would have rounded it.
func EventOf[V ~[]byte | ~string | ~map[string]any](v V) Event {
	switch value := reflect.ValueOf(v); value.Kind() {
	case reflect.Slice:
		return eventOf(slices.Clone(value.Bytes()), nil)
	case reflect.String:
		return eventOf([]byte(value.String()), nil)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return eventOf(nil, errors.New("a value has no form in JSON"))
	}
	return eventOf(text, nil)
}

func eventOf(text []byte, err error) Event {
	return Event{text: func() ([]byte, error) { return text, err }}
}

// EventFunc makes an Event from the JSON text that find returns. find is called when the report is worked out, on a
// tick: a gateway finds the text in a request's body. find is called at most once and must return within the time that
// reading the task's largest event takes; its error must not quote the content.
func EventFunc(find func() ([]byte, error)) Event { return Event{text: find} }

var (
	errObject = errors.New("an event is not an object")
	errLarge  = errors.New("the event is too large")
	errTotal  = errors.New("the person's events that enter a report are too large together")
	errOne    = errors.New("the task is about single events: want one for a key")
)

// What an event of a vector may have beside its values, and for each of its coordinates: an index, a number with all of
// its digits, and blanks. Parsing is work on a tick, and a larger event would show by when its report leaves.
const (
	besideEvent   = 4 << 10
	perCoordinate = 64
)

// A Shape bounds the events that a task's reports are about, for gateways that read them.
type Shape struct {
	Bytes int64 // of one event
	Items int   // events of a person that enter a report; 0: the task is about single events
	Room  int64 // bytes that are parsed of all events of a person
}

// ShapeOf returns the shape of a task's events. It refuses a task whose reports are not about events under keys.
func ShapeOf(a *consent.Agreement) (Shape, error) {
	p, err := newParser(a)
	if err != nil {
		return Shape{}, err
	}
	return Shape{Bytes: p.most, Items: p.items, Room: p.room()}, nil
}

// checkEvents refuses a task whose reports are not about events under keys.
func checkEvents(a *consent.Agreement) error {
	if a.Spec.Silo != nil {
		return consent.Refuse("silo", "declared",
			"none: one event that cannot be read would change others of its block; "+
				"publish files with ingest publish --data, or blocks from Go with PublishBlock")
	}
	return nil
}

// A parser makes examples of the events of an agreed task. It is immutable.
type parser struct {
	agreement *consent.Agreement
	features  *task.FeatureMap // of events in JSON
	most      int64            // bytes of an event that is parsed
	items     int              // events of a person that enter a report; 0: the task is about single events
	decoy     []byte           // an event that takes as long to parse as any of its columns does
	onMap     func()           // what a test does before a row is mapped
	onParse   func(size int)   // what a test does before an event is parsed
}

func newParser(a *consent.Agreement) (*parser, error) {
	if err := checkEvents(a); err != nil {
		return nil, err
	}
	p := &parser{agreement: a, features: a.Features, most: besideEvent, decoy: decoyOf(a.Spec)}
	if v := a.Spec.Features.Vector; v != nil {
		p.most += perCoordinate * int64(v.Dimension)
	} else {
		p.most += int64(a.Spec.Events.MaxLine)
		declared := *a.Spec
		declared.User, declared.Privacy.Unit = nil, "" // the key names the person
		spec, err := declared.ReadAs(task.JSONL)
		if err != nil {
			return nil, err
		}
		spec.Events.Key = "" // the key is beside the event
		if p.features, err = spec.Compile(); err != nil {
			return nil, err
		}
	}
	if a.Spec.Privacy.ByUser() {
		p.items = a.Spec.User.Items
	}
	return p, nil
}

// block returns the block that a key's events report about, and why one of them does not fit. It never fails, and
// takes the work of decoys for what does not fit.
func (p *parser) block(events []Event) (block.Block, error) {
	if p.items > 0 {
		examples, unfit := p.person(events)
		return block.Join(examples), unfit
	}
	e, unfit := p.one(events)
	return block.Of(e), unfit
}

// one returns the example of a single event. One that does not fit takes the parsing and the mapping of a decoy beside
// its own.
func (p *parser) one(events []Event) (convex.Example, error) {
	e, err := convex.Example{}, errOne
	if len(events) == 1 {
		var row task.Row
		if row, err = p.parsed(events[0]); err == nil {
			e, err = p.mapped(row)
		}
	}
	if err != nil {
		_, _ = p.row(p.decoy)
		_ = p.mapRow(p.features.Decoy(), new(convex.Example))
		return invalid(), err
	}
	return e, nil
}

func (p *parser) mapped(row task.Row) (e convex.Example, err error) {
	if err = p.mapRow(row, &e); err == nil {
		err = p.agreement.Valid(e)
	}
	return e, err
}

// parsed parses an event.
func (p *parser) parsed(one Event) (task.Row, error) {
	text, err := one.find()
	switch {
	case err != nil:
		return task.Row{}, err
	case int64(len(text)) > p.most:
		return task.Row{}, errLarge
	}
	return p.row(text)
}

// find returns the text of an event. The zero Event has none.
func (e Event) find() ([]byte, error) {
	if e.text == nil {
		return nil, errObject
	}
	return e.text()
}

// room returns the number of bytes that are parsed of a person: for each event as many as the columns of one need,
// plus, for all together, as many as the largest event has.
func (p *parser) room() int64 { return p.most + int64(p.items)*int64(len(p.decoy)) }

// person parses and maps a person's events; the error is of the first that does not fit. It takes the same time
// whatever the person has: it always parses and maps the largest number of events and bytes that a person may have,
// with decoys for events that are missing or too small.
func (p *parser) person(events []Event) (out []convex.Example, unfit error) {
	decoy, spare := p.features.Decoy(), p.most
	for i := range p.items {
		if i >= len(events) {
			_, _ = p.row(p.decoy)
			_ = p.mapRow(decoy, new(convex.Example))
			continue
		}
		e, err := convex.Example{}, error(nil)
		row, err := p.spared(events[i], &spare)
		if err == nil {
			e, err = p.mapped(row)
		} else {
			_ = p.mapRow(decoy, new(convex.Example))
		}
		if err != nil {
			e = invalid()
			if unfit == nil {
				unfit = err
			}
		}
		out = append(out, e)
	}
	for ; spare > 0; spare -= int64(len(p.decoy)) {
		_, _ = p.row(p.decoy)
	}
	return out, unfit
}

// spared parses an event of a person, or a decoy if there is no such event, and subtracts from the spare bytes those
// by which the event is longer than a decoy.
func (p *parser) spared(one Event, spare *int64) (task.Row, error) {
	text, err := one.find()
	more := max(0, int64(len(text)-len(p.decoy)))
	switch {
	case err != nil:
	case int64(len(text)) > p.most:
		err = errLarge
	case more > *spare:
		err = errTotal
	}
	if err != nil {
		_, _ = p.row(p.decoy)
		return task.Row{}, err
	}
	*spare -= more
	return p.row(text)
}

// row parses the text of an event.
func (p *parser) row(text []byte) (task.Row, error) {
	if p.onParse != nil {
		p.onParse(len(text))
	}
	if p.agreement.Spec.Features.Vector != nil {
		return object.Vector(text)
	}
	return object.Event(text, p.features)
}

// mapRow maps a row as the task declares.
func (p *parser) mapRow(row task.Row, dst *convex.Example) error {
	if p.onMap != nil {
		p.onMap()
	}
	return p.features.Map(row, dst)
}

// invalid returns an example that is no event of any task: a device sends the zero vector for it.
func invalid() convex.Example { return convex.Example{Label: math.NaN()} }
