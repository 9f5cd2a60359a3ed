package memory

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/panlearn/panlearn/stream"
)

// helper is one call of ServeExchange.
type helper struct {
	way *way
}

// A way carries messages to one receiver in order, from a goroutine of its own, with the faults of the injector.
type way struct {
	broker  *Broker
	op      Op
	subject string
	deliver func(message)

	mu    sync.Mutex
	queue []message
	held  *message // comes after the next one
	busy  bool
	ended bool
}

// A message of the exchange is on its way: to the helper with a way back, or from it.
type message struct {
	subject string
	data    []byte
	back    *way
}

// send puts a message on its way, or loses it. The receiver gets bytes of its own.
func (w *way) send(m message) {
	b := w.broker
	b.mu.Lock()
	fault, gone := b.fault(w.op, w.subject), b.disconnected
	b.mu.Unlock()
	if gone || fault == Lost {
		return
	}
	m.data = bytes.Clone(m.data)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	if fault == Lag && w.held == nil {
		w.held = &m
		return
	}
	w.queue = append(w.queue, m)
	if fault == Twice {
		w.queue = append(w.queue, message{m.subject, bytes.Clone(m.data), m.back})
	}
	if w.held != nil {
		w.queue, w.held = append(w.queue, *w.held), nil
	}
	if !w.busy {
		w.busy = true
		go w.run()
	}
}

// run delivers what waits.
func (w *way) run() {
	for {
		w.mu.Lock()
		if len(w.queue) == 0 || w.ended {
			w.busy = false
			w.mu.Unlock()
			return
		}
		m := w.queue[0]
		w.queue = w.queue[1:]
		w.mu.Unlock()
		w.deliver(m)
	}
}

// end loses what is on its way.
func (w *way) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended, w.queue, w.held = true, nil, nil
}

// Exchange implements stream.ExchangeAsker. Lost is a message or an answer that is lost, Twice one that comes two
// times, Lag one that comes after the next.
func (b *Broker) Exchange(ctx context.Context, subject string, receive func([]byte)) (func([]byte) error, error) {
	task, err := stream.CheckPrepare(subject)
	if err != nil {
		return nil, err
	}
	if err := b.enter(ctx, "exchange "+subject, 0); err != nil {
		return nil, err
	}
	b.mu.Unlock()
	back := &way{broker: b, op: Answer, subject: subject, deliver: func(m message) { receive(m.data) }}
	context.AfterFunc(ctx, back.end)
	return func(data []byte) error {
		if err := b.enter(ctx, "exchange "+subject, len(data)); err != nil {
			return err
		}
		helpers := slices.Clone(b.tenant(task).helpers)
		b.mu.Unlock()
		for _, h := range helpers {
			h.way.send(message{subject, data, back})
		}
		if len(helpers) == 0 {
			back.send(message{})
		}
		return nil
	}, nil
}

// ServeExchange implements stream.ExchangeServer.
func (b *Broker) ServeExchange(ctx context.Context, task stream.Task,
	take func(subject string, message []byte, reply func([]byte))) error {
	if _, err := stream.ParseTask(string(task)); err != nil {
		return fmt.Errorf("exchange: %w: %w", stream.ErrRefused, err)
	}
	if err := b.enter(ctx, "exchange of "+string(task), 0); err != nil {
		return err
	}
	defer b.mu.Unlock()
	h := &helper{&way{broker: b, op: Exchange, subject: task.Prepares(), deliver: func(m message) {
		take(m.subject, m.data, func(answer []byte) { m.back.send(message{data: answer}) })
	}}}
	t := b.tenant(task)
	t.helpers = append(t.helpers, h)
	context.AfterFunc(ctx, func() {
		h.way.end()
		b.mu.Lock()
		defer b.mu.Unlock()
		t.helpers = slices.DeleteFunc(t.helpers, func(one *helper) bool { return one == h })
	})
	return nil
}
