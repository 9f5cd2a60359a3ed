package devca

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/panlearn/panlearn/stream/natsjs"
)

// devicesRead are the direct gets of the records that devices read.
const devicesRead = `"$JS.API.DIRECT.GET.*.panlearn.*.task", "$JS.API.DIRECT.GET.*.panlearn.*.round.*",
        "$JS.API.DIRECT.GET.*.panlearn.*.end", "$JS.API.DIRECT.GET.*.panlearn.*.stage", "$JS.API.DIRECT.GET.*.panlearn.*.open.*.*",
        "$JS.API.DIRECT.GET.*.panlearn.*.claim.*", "$JS.API.DIRECT.GET.*.panlearn.*.close.*.*", "$JS.API.DIRECT.GET.*.panlearn.*.lease",
        "$JS.API.DIRECT.GET.*.panlearn.*.helper", "$JS.API.DIRECT.GET.*.panlearn.*.join.*.*"`

// site collects the users that panlearn.conf includes.
type site struct {
	roles   bytes.Buffer
	devices bytes.Buffer
}

// add names a user: administrator, learner, stage and helper by variables; publishers, of which there may be many and of which
// a relay is one, in a list.
func (s *site) add(role, public string) {
	inbox := natsjs.InboxOf(public) + ".>"
	if name := strings.ToUpper(role); !strings.HasPrefix(role, "publisher") && role != relay {
		fmt.Fprintf(&s.roles, "%s: \"%s\"\n%s_INBOX: \"%s\"\n", name, public, name, inbox)
		return
	}
	fmt.Fprintf(&s.devices, `  { nkey: "%s", permissions: { # %s
      publish: ["$SYS.REQ.USER.INFO", "panlearn.*.report.*.*", "panlearn.*.place.*.*",
        %s]
      subscribe: { allow: ["%s", "panlearn.*.wake.>"], deny: ["panlearn.*.wake.share.*"] }
  } }
`, public, role, devicesRead, inbox)
}

// bytes returns the text of site.conf for a server whose files are in dir.
func (s *site) bytes(dir string) []byte {
	out := []byte("# Written by learner devca, included by panlearn.conf: who the users are, where the files are.\n")
	for _, v := range [][2]string{{"SERVER_CERT", "server.pem"}, {"SERVER_KEY", "server-key.pem"}, {"CA", "ca.pem"},
		{"STORE", "jetstream"}} {
		out = fmt.Appendf(out, "%s: \"%s\"\n", v[0], filepath.Join(dir, v[1]))
	}
	out = append(out, s.roles.Bytes()...)
	return fmt.Appendf(out,
		"# Each publisher has an inbox of its own, so that none reads another's answers.\nDEVICES: [\n%s]\n",
		s.devices.Bytes())
}

// links returns the text of links.conf, the variables of cluster.conf, for the server of this name, which the
// others reach at servers[own].
func links(dir, name string, servers []string, own int) []byte {
	var others []string
	for i, at := range servers {
		if i != own {
			others = append(others, fmt.Sprintf("\"nats://%s\"", at))
		}
	}
	out := fmt.Appendf(nil,
		"# Written by learner devca, included by cluster.conf: how this server and the others reach each other.\n"+
			"SERVER_NAME: \"%s\"\nROUTE_LISTEN: \"%s\"\nROUTES: [%s]\n", name, servers[own], strings.Join(others, ", "))
	for _, v := range [][2]string{{"ROUTE_CERT", "route.pem"}, {"ROUTE_KEY", "route-key.pem"},
		{"ROUTE_CA", "route-ca.pem"}} {
		out = fmt.Appendf(out, "%s: \"%s\"\n", v[0], filepath.Join(dir, v[1]))
	}
	return out
}
