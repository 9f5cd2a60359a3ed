package natsjs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
)

// ErrNoStream means that no stream replies: the task's streams are not provisioned, or have no leader right now.
var ErrNoStream = errors.New(
	"no stream answers: is that the task's name? If so, make its streams with learner provision, or wait for their leader. " +
		"Where they were there, nats-server has disabled JetStream: is its disk full?")

// ErrFullDisk means that the broker cannot write. When there is room again, nats-server goes on refusing until it is
// restarted.
var ErrFullDisk = errors.New(
	"the broker refuses writes: its disk is full or broken; free space there, then restart nats-server, which refuses until then")

// ErrUnreachable means that no broker takes a connection at the addresses: it may not run yet.
var ErrUnreachable = errors.New("no broker answers there: is it running?")

// A ConfigError means that a configuration cannot work whatever the broker does.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }

func (e *ConfigError) Unwrap() error { return e.Err }

// errNoAnswer replaces the end of a request's own context, which must not look like the end of the caller's.
var errNoAnswer = errors.New("no answer from the broker: the connection is lost or slow")

func unanswered(ctx context.Context, err error) error {
	late := errors.Is(err, context.DeadlineExceeded)
	switch {
	case ctx.Err() == nil && (late || errors.Is(err, context.Canceled)):
		return errNoAnswer
	case late && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &lateError{errNoAnswer, ctx.Err()}
	}
	return err
}

// A lateError joins the end of the caller's time with the cause that it points to; its text is the cause's.
type lateError struct{ cause, end error }

func (e *lateError) Error() string { return e.cause.Error() }

func (e *lateError) Unwrap() []error { return []error{e.cause, e.end} }

// unwritten turns the error of a write that was not answered, while a read was, into errUnwritten: nats-server does not
// answer a write that it could not store.
func unwritten(err error) error {
	if errors.Is(err, errUnwritten) {
		return err
	}
	if end := (*lateError)(nil); errors.As(err, &end) {
		return &lateError{errUnwritten, end.end}
	}
	if errors.Is(err, errNoAnswer) {
		return errUnwritten
	}
	return err
}

// errUnwritten is errNoAnswer, too: a broker that is slow looks the same for a while.
var errUnwritten error = &lateError{
	errors.New("the broker answers reads and not writes: is its disk full? Free space there, then restart nats-server, " +
		"which refuses until then"), errors.Join(ErrFullDisk, errNoAnswer)}

// Server error codes.
const (
	codeWrongLastSequence         = 10071
	codeWrongLastSequenceInFlight = 10164 // with replicas: a write of the subject is on its way
	codeStoreFailed               = 10077 // a limit, by its text
	codeMessageTooLarge           = 10054
	codeStreamMismatch            = 10060
	codeStreamNotFound            = 10059
	codeConsumerNotFound          = 10014
	codeInsufficientResources     = 10023 // of the server
	codeAccountResources          = 10002 // of the account
	codeInsufficientStorage       = 10047
	codeInsufficientMemory        = 10028
	codeReplicasUnsupported       = 10074
	codeNotEnabled                = 10076
	codeNotEnabledForAccount      = 10039
	codeNoMetaLeader              = 10008 // "JetStream system temporarily unavailable"
	codeIncomplete                = 10004 // "incomplete results"
	codeNotLeader                 = 10009 // "JetStream cluster can not handle request"
	codeNoPeers                   = 10005 // fewer servers are up than there are replicas
	codeStreamOffline             = 10118
	codeConsumerOffline           = 10119
)

// Code returns the code of a JetStream error, 0 for any other error.
func Code(err error) jetstream.ErrorCode {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.ErrorCode
	}
	return 0
}

// Failed reports whether a server failed to do what it was asked to, for any client: mostly because its disk has no
// room.
func Failed(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.Code >= 500
}

// conflict reports whether an expected sequence of a subject was refused.
func conflict(err error) bool {
	switch Code(err) {
	case codeWrongLastSequence, codeWrongLastSequenceInFlight:
		return true
	case codeStoreFailed:
		return strings.Contains(err.Error(), "maximum messages per subject exceeded")
	}
	return false
}

// notStored reports whether the broker has answered that it did not store a report. Only answers that come before
// anything is written or proposed count (nats-server 2.15: limits of the stream, server and account, and of sizes);
// any other error leaves the outcome open, such as one of the disk, or that a message of the same id is on its way
// (10158).
func notStored(err error) bool {
	if errors.Is(err, nats.ErrMaxPayload) {
		return true
	}
	switch Code(err) {
	case codeMessageTooLarge, codeInsufficientResources, codeAccountResources:
		return true
	case codeStoreFailed:
		text := err.Error()
		return strings.Contains(text, "maximum bytes exceeded") || strings.Contains(text, "maximum messages exceeded") ||
			strings.Contains(text, "maximum messages per subject exceeded") || strings.Contains(text, "message too large")
	}
	return false
}

// reasonOf returns the reason of an error that notStored takes.
func reasonOf(err error) stream.Reason {
	text := err.Error()
	switch code := Code(err); {
	case errors.Is(err, nats.ErrMaxPayload), code == codeMessageTooLarge, strings.Contains(text, "message too large"):
		return stream.TooLarge
	case code == codeInsufficientResources, code == codeAccountResources:
		return stream.NoRoom
	case strings.Contains(text, "maximum messages per subject exceeded"):
		return stream.AttemptFull
	case code == codeStoreFailed:
		return stream.StreamFull
	}
	return 0
}

// explain adds to a broker's error what to do about it.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrDisconnected):
		return stream.ErrDisconnected // the library's words are of a buffer that we do not use
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse):
		return fmt.Errorf("%w (%w)", ErrNoStream, err)
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%w: %w", stream.ErrRefused, err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrDenied):
		return err
	}
	fix := ""
	if Code(err) != 0 && strings.Contains(err.Error(), "no space left on device") {
		return fmt.Errorf("%w (%w)", ErrFullDisk, err)
	}
	switch Code(err) {
	case codeStreamNotFound, codeConsumerNotFound:
		return fmt.Errorf("%w (%w)", ErrNoStream, err)
	case codeMessageTooLarge:
		return fmt.Errorf("%w: %w: raise the stream's message limit or lower the task's dimension", stream.ErrRefused, err)
	case codeStreamMismatch:
		return fmt.Errorf("%w: %w: another stream holds this subject", stream.ErrRefused, err)
	case codeStoreFailed:
		fix = fullStream(err.Error())
	case codeInsufficientResources:
		fix = "the server's JetStream has no room left: raise its limits (max_file_store, max_memory_store), or remove tasks that have ended (learner remove)"
	case codeAccountResources:
		fix = "the account may keep no more: raise its JetStream limits, or remove tasks that have ended (learner remove)"
	case codeInsufficientStorage, codeInsufficientMemory:
		fix = "raise the server's JetStream limits (max_file_store, max_memory_store), remove tasks that have ended (learner remove), or ask for fewer report bytes"
	case codeNoMetaLeader, codeIncomplete, codeNotLeader, codeStreamOffline, codeConsumerOffline:
		return fmt.Errorf("%w (%w)", ErrUnavailable, err)
	case codeNoPeers:
		return fmt.Errorf("%w (%w): start as many servers as there are replicas", ErrUnavailable, err)
	case codeReplicasUnsupported:
		fix = "ask for one replica, or run a JetStream cluster"
	case codeNotEnabledForAccount:
		return fmt.Errorf(
			"%w (%w): enable JetStream for this account, or use credentials of the account that has the streams", ErrDenied, err)
	case codeNotEnabled:
		fix = "enable JetStream on the server; where it was enabled nats-server has disabled it, as on a full disk: free space there and restart nats-server"
	}
	if errors.Is(err, nats.ErrPermissionViolation) || errors.Is(err, nats.ErrAuthorization) {
		fix = "use credentials with this role's permissions"
	}
	if fix == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, fix)
}

// fullStream returns the advice for a full stream, by the text of the broker's error; empty if that is another error.
func fullStream(text string) string {
	switch {
	case strings.Contains(text, "maximum bytes exceeded"), strings.Contains(text, "maximum messages exceeded"):
		return "the stream of reports is full: does a stage work? Else what waits is garbage, or the stream is too small: raise its max_bytes with the nats command"
	case strings.Contains(text, "maximum messages per subject exceeded"):
		return "as many reports wait for the attempt as may: does a stage work? It takes more when some of them are opened"
	}
	return ""
}
