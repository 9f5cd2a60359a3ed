package memory

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// Defaults of Config.
const (
	defaultMaxPayload    = 1 << 20
	defaultMaxAckPending = 4096
	defaultWindow        = 1 << 16
)

// Config configures a Broker. The zero value is a broker without faults and without a limit on stored bytes.
type Config struct {
	MaxPayload     int           // bytes of one message; 0: 1 MiB
	MaxReportBytes int64         // stored report bytes of a task, beyond which publishes are refused; 0: no limit
	MaxPerSubject  int           // stored reports of one attempt, beyond which publishes are refused; 0: no limit
	MaxAckPending  int           // reports of a task that may be out un-acknowledged; 0: 4096
	AckWait        time.Duration // after which an un-acknowledged report comes back; 0: only by Redeliver
	Window         int           // message ids of a task that are remembered; 0: 65,536
	Shuffle        bool          // deliver in random order instead of by sequence
	Seed           uint64        // of Shuffle
	Inject         Injector      // nil: no faults
	Keep           bool          // Dump also returns what was acknowledged or purged
}

// A Broker implements stream.Records, stream.Transport, stream.PlaceServer and both ends of the exchange of two
// operators, for all tasks. It is safe for concurrent use.
type Broker struct {
	config Config

	mu           sync.Mutex // guards all below
	inject       Injector
	rng          *rand.Rand
	disconnected bool
	tasks        map[stream.Task]*tenant
	deleted      []Stored
}

var (
	_ stream.Records        = (*Broker)(nil)
	_ stream.Transport      = (*Broker)(nil)
	_ stream.PlaceServer    = (*Broker)(nil)
	_ stream.ExchangeAsker  = (*Broker)(nil)
	_ stream.ExchangeServer = (*Broker)(nil)
	_ stream.ReportReader   = (*Reader)(nil)
)

// tenant is one task on the broker.
type tenant struct {
	records  map[stream.Stream]*records
	queue    *queue
	watchers []*stream.Wakes // in the order of Watch, so that faults are a function of the seed
	answers  []*placeServer  // servers of requests for places, in the order of ServePlaces
	helpers  []*helper       // who takes messages of the exchange, in the order of ServeExchange
}

// New makes a broker. Negative limits are refused.
func New(c Config) (*Broker, error) {
	if c.MaxPayload < 0 || c.MaxReportBytes < 0 || c.MaxPerSubject < 0 || c.MaxAckPending < 0 || c.AckWait < 0 ||
		c.Window < 0 {
		return nil,
			fmt.Errorf(
				"memory broker: negative limit in max payload %d, max report bytes %d, max per subject %d, max ack pending %d, ack wait %v, window %d",
				c.MaxPayload, c.MaxReportBytes, c.MaxPerSubject, c.MaxAckPending, c.AckWait, c.Window)
	}
	if c.MaxPayload == 0 {
		c.MaxPayload = defaultMaxPayload
	}
	if c.MaxAckPending == 0 {
		c.MaxAckPending = defaultMaxAckPending
	}
	if c.Window == 0 {
		c.Window = defaultWindow
	}
	return &Broker{
		config: c, inject: c.Inject, rng: rand.New(rand.NewPCG(c.Seed, 0)), tasks: map[stream.Task]*tenant{},
	}, nil
}

// Limits returns the limits of the broker.
func (b *Broker) Limits() stream.Limits { return stream.Limits{MaxPayload: b.config.MaxPayload} }

// Inject replaces the injector; nil ends all faults.
func (b *Broker) Inject(f Injector) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inject = f
}

// Disconnect makes every call fail with ErrDisconnected until Connect. Watches and acknowledgements are silent.
func (b *Broker) Disconnect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.disconnected = true
}

// Connect ends Disconnect and wakes every watch, as a reconnecting adapter does.
func (b *Broker) Connect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.disconnected = false
	for _, t := range b.tasks {
		t.wake(stream.Wake{}, func() Fault { return None })
		t.queue.changed()
	}
}

// Redeliver makes every report of a task that is out un-acknowledged available again, as if AckWait had passed.
func (b *Broker) Redeliver(task stream.Task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tenant(task).queue.takeBack(func(*item) bool { return true })
}

// Forget empties a task's window of message ids, as time or a broker's restart does: a retry is then stored again.
func (b *Broker) Forget(task stream.Task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tenant(task).queue.forget()
}

// fault asks the injector; b.mu is held.
func (b *Broker) fault(op Op, subject string) Fault {
	if b.inject == nil {
		return None
	}
	return b.inject(op, subject)
}

// tenant returns the state of a task; b.mu is held.
func (b *Broker) tenant(task stream.Task) *tenant {
	t := b.tasks[task]
	if t == nil {
		t = &tenant{records: map[stream.Stream]*records{}, queue: newQueue(b.config.Window)}
		for _, s := range []stream.Stream{stream.Rounds, stream.Attempts, stream.Leases, stream.Batches, stream.Joins, stream.Spends} {
			t.records[s] = newRecords()
		}
		b.tasks[task] = t
	}
	return t
}
