package device

import (
	"context"
	"time"

	"github.com/panlearn/panlearn/stream/device/participation"
)

// perform does what an effect says, and returns what came of it. It decides nothing.
func (l *loop) perform(ctx context.Context, e effect) (got result) {
	switch e.call {
	case readTask:
		got = l.records.read(ctx, e)
		got.maxPayload = l.Transport.Limits().MaxPayload
	case readPin:
		var pin participation.Pin
		if pin, got.found, got.err = l.Store.Pin(); got.found {
			got.pin = &pin
		}
	case readManifest:
		got.hash, got.found, got.err = l.Store.Manifest(e.number)
	case readEvents:
		keys := make([]participation.Key, len(e.events))
		for i, one := range e.events {
			keys[i] = one.record.Key
		}
		got.records, got.err = l.Store.Read(keys)
	case write:
		got.err = l.Store.Write(e.change)
	case enterLedger:
		l.accounts.agreement, l.records.agreement = e.terms, e.agreement
		// an event is a person, under the person's key
		l.accounts.perUser = l.UserKeys || e.agreement.Spec.Privacy.ByUser() && e.agreement.Spec.Silo == nil
		if e.terms != nil {
			got.err = l.accounts.enter(e.pinned, e.open)
		}
	case chargeLedger:
		got.allowed, got.refused, got.err = l.accounts.charge(e.events, e.round)
	case settleLedger:
		got.err = l.accounts.settle(e.events)
	case prepareReports:
		got.err = l.reports.prepare(e.phase, e.message)
	case drawReports:
		got.err = l.reports.draw(ctx, e.events, e.round)
	case publish:
		l.courier.deliver(e.delivery)
	case request:
		l.courier.request(ctx, e.ask)
	case askForToken:
		if l.granting.own != nil {
			l.courier.group.Go(func() { l.granting.begin(ctx, l.contract.tokens) })
		}
	case askIssuer:
		if l.granting.come(e.events) {
			l.courier.group.Go(func() { l.granting.request(ctx, l.contract.tokens) })
		}
	case tellRound:
		l.records.there = time.Now().Round(0)
		l.tellProgress()
	case tellEnd:
		close(l.ended)
		if l.core.busy() { // for the Close of the last round
			l.times.soon(time.Now(), min(l.core.spread(), l.CloseWait/2))
		}
		l.tellProgress()
	case tellProgress:
		l.tellProgress()
	default:
		got = l.records.read(ctx, e)
	}
	if l.onEffect != nil {
		l.onEffect(e, got)
	}
	return got
}

// read performs an effect that reads records.
func (r *records) read(ctx context.Context, e effect) (got result) {
	switch e.call {
	case readTask:
		got.task, got.hash, got.found = r.readTask(ctx)
	case readLease:
		limited, cancel := context.WithTimeout(ctx, r.timeout)
		defer cancel()
		m, err := r.port.Get(limited, r.task.Lease())
		got.time, got.err, got.ended = m.Time, err, ctx.Err() != nil
	case readNewest:
		got.round, got.hash, got.found = r.newestRound(ctx, e.number, time.Now().Round(0))
	case readRound:
		got.round, got.hash, got.found = r.readRound(ctx, e.number)
	case checkRound:
		limited, cancel := context.WithTimeout(ctx, r.timeout)
		defer cancel()
		m, err := r.port.Get(limited, r.task.Round(e.number))
		if got.err = err; err == nil {
			got.round, got.hash, got.found = r.round(m)
		}
	case checkRemoved:
		got.found = r.removed(ctx, e.number)
	case readOpen:
		got.open, got.attempt, got.found = r.latestOpen(ctx, e.number, e.round.manifest)
	case readOpenOf:
		if m, ok := r.get(ctx, r.task.Open(e.number, e.attempt), false); ok {
			got.open, got.attempt, got.found = r.open(m, e.round.manifest)
		}
	case readJoin:
		got.join, got.hash, got.found = r.readJoin(ctx, e.round)
	case readClose:
		got.close, got.found = r.readClose(ctx, e.number, e.attempt, e.round.manifest)
	case readBeside:
		got.closed, got.found = r.closed(ctx, e.close)
	case readEnd:
		if m, ok := r.get(ctx, r.task.End(), false); ok {
			got.end, got.found = r.end(m)
		}
	}
	return got
}
