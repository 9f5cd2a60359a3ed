package permissions

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/panlearn/panlearn/stream"
)

// A place holds a broker on which an attack is tried.
type place struct {
	name   string
	broker *broker
	falls  bool // the attack works here
}

// An attack holds an action that is tried with a role's credentials.
type attack struct {
	name    string
	role    string
	control string // the place where it works
	try     trial
	scene   string // attacks of one role with the same name here do not disturb each other; empty: one for this attack
}

// A trial makes the attack and reports whether it worked.
type trial = func(t *testing.T, s *scene, c *client) bool

// TestAttacks: each works where it is said to, and none on the shipped configuration or on a site in operator mode.
func TestAttacks(t *testing.T) {
	controls := map[string]*broker{onOpen: open(t), onPermissions: permissions(t)}
	safe := shipped(t)
	site, _ := operated(t)
	type stage struct{ place, role, scene string }
	scenes := map[stage]*scene{}
	for _, a := range attacks() {
		for _, p := range []place{{a.control, controls[a.control], true}, {"the shipped configuration", safe, false},
			{"a site", site, false}} {
			at := stage{p.name, a.role, or(a.scene, a.name)}
			if scenes[at] == nil {
				scenes[at] = p.broker.scene(t)
				scenes[at].falls = p.falls
			}
			c := p.broker.raw(t, a.role)
			if worked := a.try(t, scenes[at], c); worked != p.falls {
				t.Errorf("%s %s: on %s: worked %t, want %t", a.role, a.name, p.name, worked, p.falls)
			}
			c.nc.Close()
		}
	}
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

const (
	onOpen        = "a broker without authentication"
	onPermissions = "a broker with permissions and one account"
)

func attacks() []attack {
	all := []attack{
		{"reads reports from the stream", learner, onOpen, reads("$JS.API.STREAM.MSG.GET."+task.Name(stream.Reports),
			`{"seq":1}`, secretReport), "looks"},
		{"reads reports from the stream", publisher, onOpen, reads("$JS.API.STREAM.MSG.GET."+task.Name(stream.Reports),
			`{"seq":1}`, secretReport), "looks"},
		{"takes reports from the work queue", learner, onOpen, reads("$JS.API.CONSUMER.MSG.NEXT."+task.Name(stream.Reports)+
			".stage", "", secretReport), ""},
		{"takes reports from the work queue", publisher, onOpen, reads("$JS.API.CONSUMER.MSG.NEXT."+task.Name(stream.Reports)+
			".stage", "", secretReport), ""},
		{"reads a batch by its subject", publisher, onOpen, reads("$JS.API.DIRECT.GET."+task.Name(stream.Batches)+"."+
			task.Batch(1), "", secretBatch), "looks"},
		{"reads a batch by all subjects", publisher, onOpen, reads("$JS.API.DIRECT.GET."+task.Name(stream.Batches)+
			".panlearn.>", "", secretBatch), "looks"},
		{"reads a batch by its sequence", publisher, onOpen, reads("$JS.API.DIRECT.GET."+task.Name(stream.Batches),
			`{"seq":1}`, secretBatch), "looks"},
		{"reads a batch from the stream", publisher, onOpen, reads("$JS.API.STREAM.MSG.GET."+task.Name(stream.Batches),
			`{"seq":1}`, secretBatch), "looks"},
		{"reads many batches at once", publisher, onOpen, reads("$JS.API.DIRECT.GET."+task.Name(stream.Batches),
			`{"multi_last":["panlearn.>"]}`, secretBatch), "looks"},
		{"forges an answer to another", publisher, onOpen, answers, "looks"},
		{"reads a share by its subject", publisher, onOpen, reads("$JS.API.DIRECT.GET."+task.Name(stream.Joins)+"."+
			task.Share(1), "", secretShare), "looks"},
		{"reads a share from the stream", learner, onOpen, reads("$JS.API.STREAM.MSG.GET."+task.Name(stream.Joins),
			`{"seq":1}`, secretShare), "looks"},
		{"reads a batch by its subject", helper, onOpen, reads("$JS.API.DIRECT.GET."+task.Name(stream.Batches)+"."+
			task.Batch(1), "", secretBatch), "looks"},
		{"reads reports from the stream", helper, onOpen, reads("$JS.API.STREAM.MSG.GET."+task.Name(stream.Reports),
			`{"seq":1}`, secretReport), "looks"},
		{"takes reports from the work queue", helper, onOpen, reads("$JS.API.CONSUMER.MSG.NEXT."+task.Name(stream.Reports)+
			".stage", "", secretReport), ""},
		{"purges reports", helper, onOpen, purges, ""},
		{"creates a consumer", helper, onOpen, consumes, "looks"},
		{"deletes a stream", helper, onOpen, api("$JS.API.STREAM.DELETE."+task.Name(stream.Joins), ""), ""},
		{"lists streams", publisher, onOpen, api("$JS.API.STREAM.NAMES", ""), "looks"},
		{"sees how full the reports are", publisher, onOpen, api("$JS.API.STREAM.INFO."+task.Name(stream.Reports), ""),
			"looks"},
		{"sees how full the reports are", learner, onOpen, api("$JS.API.STREAM.INFO."+task.Name(stream.Reports), ""),
			"looks"},
		{"creates a stream that listens on batches", learner, onOpen, api("$JS.API.STREAM.CREATE.MINE",
			`{"name":"MINE","subjects":["mine"],"storage":"memory"}`), ""},
		{"changes a stream", stage, onOpen, api("$JS.API.STREAM.UPDATE."+task.Name(stream.Leases), `{"name":"`+
			task.Name(stream.Leases)+`","subjects":["panlearn.churn.lease"]}`), ""},
		{"deletes a stream", stage, onOpen, api("$JS.API.STREAM.DELETE."+task.Name(stream.Batches), ""), ""},
		{"deletes a stream", publisher, onOpen, api("$JS.API.STREAM.DELETE."+task.Name(stream.Reports), ""), ""},
		{"deletes a message", publisher, onOpen, api("$JS.API.STREAM.MSG.DELETE."+task.Name(stream.Reports), `{"seq":1}`),
			""},
		{"deletes the work queue's consumer", learner, onOpen, api("$JS.API.CONSUMER.DELETE."+task.Name(stream.Reports)+
			".stage", ""), ""},
		{"purges reports", publisher, onOpen, purges, ""},
		{"purges reports", learner, onOpen, purges, ""},
		{"creates a consumer", publisher, onOpen, consumes, "looks"},
		{"creates a consumer", learner, onOpen, consumes, "looks"},
		{"creates a consumer", stage, onOpen, consumes, "looks"},
	}
	for _, role := range []string{learner, stage, helper, publisher} {
		for _, of := range []stream.Stream{stream.Rounds, stream.Attempts, stream.Batches, stream.Joins} {
			all = append(all, attack{"removes a record of " + of.String(), role, onOpen,
				removes(of), role + " removes records"})
		}
	}
	for _, w := range []struct{ role, subject string }{
		{stage, task.Task()}, {stage, task.Round(9)}, {stage, task.End()}, {stage, task.Report(1, 1)},
		{learner, task.Stage()}, {learner, task.Open(9, 1)}, {learner, task.Claim(9)}, {learner, task.Close(9, 1)},
		{learner, task.Lease()}, {learner, task.Batch(9)}, {learner, task.Report(1, 1)},
		{publisher, task.Task()}, {publisher, task.Round(9)}, {publisher, task.End()}, {publisher, task.Stage()},
		{publisher, task.Open(9, 1)}, {publisher, task.Claim(9)}, {publisher, task.Close(9, 1)}, {publisher, task.Lease()},
		{publisher, task.Batch(9)}, {publisher, task.Spent(9, 1)}, {learner, task.Spent(9, 1)}, {helper, task.Spent(9, 1)},
		{helper, task.Round(9)}, {helper, task.Open(9, 1)}, {helper, task.Claim(9)}, {helper, task.Batch(9)},
		{helper, task.Report(1, 1)}, {stage, task.Join(9, 1)}, {stage, task.Share(9)}, {learner, task.Share(9)},
		{publisher, task.Join(9, 1)}, {publisher, task.Share(9)},
	} {
		all = append(all, attack{"writes " + w.subject, w.role, onOpen, writes(w.subject), "writes"})
		if strings.Contains(w.subject, ".report.") {
			continue // a reply to everybody would be a garbage report, which publishers can send anyway
		}
		all = append(all,
			attack{"traces into " + w.subject, w.role, onOpen, traces(w.subject), "traces"},
			attack{"has an acknowledgement written to " + w.subject, w.role, onPermissions, injects(w.subject, own),
				"acknowledgements"},
			attack{"has an answer written to " + w.subject, w.role, onPermissions, injects(w.subject, missing), "answers"})
	}
	for _, subject := range []string{">", "_INBOX.>", "*.>", "_INBOX.*.*", "$JS.>", "panlearn.>", "panlearn.*.report.*.*",
		task.Report(1, 1)} {
		for _, role := range []string{publisher, learner, helper} {
			all = append(all, attack{"overhears " + subject, role, onOpen, overhears(subject), "overhears"})
		}
	}
	all = append(all,
		attack{"overhears the inbox that all share", publisher, onPermissions, overhears("_INBOX.>"), "overhears"},
		attack{"overhears it in a queue group", publisher, onPermissions, overhears("_INBOX.> group"), "overhears"})
	for _, a := range all { // those who take over a relay have what a publisher has, and no more
		if a.role == publisher {
			a.role = relay
			if a.scene != "" {
				a.scene += " of a relay"
			}
			all = append(all, a)
		}
	}
	return all
}

// reads sends a request and checks whether the reply holds the secret.
func reads(subject, body, secret string) trial {
	return func(t *testing.T, s *scene, c *client) bool {
		m, err := c.request(t, s.of(subject), s.of(body))
		return err == nil && (strings.Contains(string(m.Data), secret) ||
			strings.Contains(string(m.Data), base64.StdEncoding.EncodeToString([]byte(secret))))
	}
}

// api makes a call and sees whether the broker obeyed.
func api(subject, body string) trial {
	return func(t *testing.T, s *scene, c *client) bool {
		m, err := c.request(t, s.of(subject), s.of(body))
		return err == nil && !apiError(m)
	}
}

// TestNobodyPurgesRecords: the stage may purge reports, and with that request the purge of any stream; the streams of
// records refuse everybody.
func TestNobodyPurgesRecords(t *testing.T) {
	s := shipped(t).scene(t)
	for _, role := range []string{admin, learner, stage, helper, publisher} {
		c := s.raw(t, role)
		for _, of := range []stream.Stream{stream.Rounds, stream.Attempts, stream.Batches, stream.Joins, stream.Spends} {
			m, err := c.request(t, "$JS.API.STREAM.PURGE."+s.task.Name(of), "")
			if err == nil && !apiError(m) {
				t.Errorf("%s purges %v", role, of)
			}
			if may := role == admin || role == stage; may != (err == nil) {
				t.Errorf("%s asks to purge %v: %v", role, of, err)
			}
		}
	}
}

// removes deletes the first record of a stream, as retention does.
func removes(of stream.Stream) trial {
	return func(t *testing.T, s *scene, c *client) bool {
		if of == stream.Attempts {
			s.put(t, stage, task.Open(1, 1), "open")
		}
		return api("$JS.API.STREAM.MSG.DELETE."+task.Name(of), `{"seq":1,"no_erase":true}`)(t, s, c)
	}
}

func purges(t *testing.T, s *scene, c *client) bool {
	c.request(t, s.of("$JS.API.STREAM.PURGE."+task.Name(stream.Reports)), "")
	return s.reports(t) == 0
}

func consumes(t *testing.T, s *scene, c *client) bool {
	for _, form := range []string{
		"$JS.API.CONSUMER.CREATE." + task.Name(stream.Batches), "$JS.API.CONSUMER.CREATE." + task.Name(stream.Batches) +
			".spy",
		"$JS.API.CONSUMER.CREATE." + task.Name(stream.Batches) + ".spy." + task.Batch(1), "$JS.API.CONSUMER.DURABLE.CREATE." +
			task.Name(stream.Batches) + ".spy",
	} {
		c.request(t, s.of(form), s.of(`{"stream_name":"`+task.Name(stream.Batches)+
			`","config":{"durable_name":"spy","name":"spy","ack_policy":"none","filter_subject":"`+task.Batch(1)+`"}}`))
	}
	return s.stream(t, stream.Batches).CachedInfo().State.Consumers > 0
}

// writes puts something on a subject of somebody else.
func writes(subject string) trial {
	return func(t *testing.T, s *scene, c *client) bool {
		c.request(t, s.of(subject), "forged")
		m := s.standing(t, subject)
		return m != nil && string(m.Data) == "forged"
	}
}

// answers publishes into another's inbox.
func answers(t *testing.T, s *scene, c *client) bool {
	victim := s.raw(t, publisher2)
	inbox := victim.nc.NewInbox()
	sub, err := victim.nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	flush(t, victim.nc)
	if err := c.nc.Publish(inbox, []byte("forged")); err != nil {
		t.Fatal(err)
	}
	c.flush(t)
	flush(t, victim.nc) // what was sent to it has come
	n, _, err := sub.Pending()
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

func flush(t *testing.T, nc *nats.Conn) {
	t.Helper()
	if err := nc.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
}

// own returns a subject that a role may write; missing one that each role may read, of a record that does not
// exist: the answer is an empty message. (An answer that is a record names in its header the stream it
// expects, so that another one would not store it.)
func own(role string) string {
	return map[string]string{learner: task.Round(2), stage: task.Open(2, 1), publisher: task.Report(1, 1),
		relay: task.Report(1, 1), helper: task.Share(2)}[role]
}

func missing(string) string {
	return "$JS.API.DIRECT.GET." + task.Name(stream.Rounds) + "." + task.Round(99)
}

// injects makes a request that the role may make, with a stream's subject as the reply subject.
func injects(subject string, request func(role string) string) trial {
	return func(t *testing.T, s *scene, c *client) bool {
		m := &nats.Msg{Subject: s.of(request(c.nc.Opts.Name)), Reply: s.of(subject)}
		return provoke(t, s, c, m, subject)
	}
}

// traces asks the server to say on a stream's subject what becomes of a message.
func traces(subject string) trial {
	return func(t *testing.T, s *scene, c *client) bool {
		m := &nats.Msg{Subject: s.of(own(c.nc.Opts.Name)), Header: nats.Header{"Nats-Trace-Dest": {s.of(subject)}}}
		return provoke(t, s, c, m, subject)
	}
}

// provoke sends a message whose answer would be written to subject, and looks there. An answer leaves through the
// queue of the stream that makes it and enters through the queue of the one that stores it, in the order of the
// writes after it: when the first of these are acknowledged it has left, and when the second are, it has been
// stored or never will be. A trace leaves through a queue of its own: where attacks are expected to work, provoke waits
// for the answer.
func provoke(t *testing.T, s *scene, c *client, m *nats.Msg, subject string) bool {
	t.Helper()
	const after = "after"
	if err := c.nc.PublishMsg(m); err != nil {
		t.Fatal(err)
	}
	c.flush(t)
	for i := uint64(7); i <= 8; i++ {
		s.report(t)
		s.put(t, learner, task.Round(stream.Round(i)), after)
		s.put(t, stage, task.Open(stream.Round(i), 1), after)
		s.put(t, stage, task.Batch(stream.Round(i)), after)
		s.put(t, stage, task.Spent(stream.Round(i), 1), after)
		s.put(t, helper, task.Share(stream.Round(i)), after)
	}
	_, err := s.conn(t, stage).Swap(t.Context(), s.task.Lease(), 0, []byte(after))
	if err != nil && !errors.Is(err, stream.ErrConflict) {
		t.Fatal(err)
	}
	worked := func() bool {
		stands := s.standing(t, subject)
		return stands != nil && string(stands.Data) != after
	}
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(patience); s.falls && !worked() && time.Now().Before(end); {
		<-look.C
	}
	return worked()
}

// overhears subscribes and sees whether anything comes while others work.
func overhears(what string) trial {
	return func(t *testing.T, s *scene, c *client) bool {
		subject, group, _ := strings.Cut(what, " ")
		sub, err := c.nc.QueueSubscribeSync(s.of(subject), group)
		if err != nil {
			t.Fatal(err)
		}
		c.flush(t)
		s.report(t)
		if _, err := s.conn(t, publisher2).Get(t.Context(), s.task.Round(1)); err != nil {
			t.Fatal(err)
		}
		c.flush(t)
		n, _, err := sub.Pending()
		if err != nil {
			return false
		}
		for range n {
			m, err := sub.NextMsg(patience)
			if err == nil && (c.mine == nil || !c.mine(m.Subject)) {
				return true
			}
		}
		return false
	}
}

// TestRollup: a header on a message that a role may write erases what others wrote, where the stream lets it.
func TestRollup(t *testing.T) {
	for _, p := range []place{{"control", open(t), true}, {"the shipped configuration", shipped(t), false}} {
		for _, kind := range []string{"all", "sub"} {
			s := p.broker.scene(t)
			if p.falls {
				allowRollup(t, s)
			}
			s.report(t)
			m := &nats.Msg{Subject: s.task.Report(1, 1), Data: []byte("x"), Header: nats.Header{"Nats-Rollup": {kind}}}
			p.broker.raw(t, publisher).requestMsg(t, m)
			if erased := s.reports(t) < 2; erased != p.falls {
				t.Errorf("on %s, Nats-Rollup %s: erased %t, want %t", p.name, kind, erased, p.falls)
			}
		}
	}
}

func allowRollup(t *testing.T, s *scene) {
	t.Helper()
	config := s.stream(t, stream.Reports).CachedInfo().Config
	config.AllowRollup = true
	if _, err := s.admin.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}

// apiError reports whether an answer refuses a request.
func apiError(m *nats.Msg) bool { return strings.Contains(string(m.Data), `"error":`) }

// TestReservedReplies: an import passes replies that begin with $JS.ACK on as they are, so an empty answer sent
// there would acknowledge a report of somebody else. The server refuses such replies of clients; older ones may
// not.
func TestReservedReplies(t *testing.T) {
	s := shipped(t).scene(t)
	for _, role := range []string{publisher, learner, stage} {
		c := s.raw(t, role)
		for _, reply := range []string{"$JS.ACK." + s.task.Name(stream.Reports) + ".stage.1.1.1.1.0", "_R_.abc.def"} {
			m := &nats.Msg{Subject: s.of(missing(role)), Reply: reply}
			if err := c.nc.PublishMsg(m); err != nil {
				t.Fatal(err)
			}
			flush(t, c.nc)
			if err := c.nc.LastError(); !errors.Is(err, nats.ErrPermissionViolation) ||
				!strings.Contains(strings.ToLower(err.Error()), strings.ToLower(reply)) {
				t.Errorf("%s with the reply %s: %v, want it refused", role, reply, err)
			}
		}
	}
}
