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
        "$JS.API.DIRECT.GET.*.panlearn.*.claim.*", "$JS.API.DIRECT.GET.*.panlearn.*.close.*.*", "$JS.API.DIRECT.GET.*.panlearn.*.lease"`

// site collects what panlearn.conf includes.
type site struct {
	head    bytes.Buffer
	devices bytes.Buffer
}

func newSite(dir string) *site {
	s := new(site)
	fmt.Fprintf(&s.head, "# Written by learner devca, included by panlearn.conf: who the users are, where the files are.\n")
	for _, v := range [][2]string{{"SERVER_CERT", "server.pem"}, {"SERVER_KEY", "server-key.pem"}, {"CA", "ca.pem"}, {"STORE", "jetstream"}} {
		fmt.Fprintf(&s.head, "%s: \"%s\"\n", v[0], filepath.Join(dir, v[1]))
	}
	return s
}

// add names a user: administrator, learner and stage by variables; publishers, of which there may be many, in a list.
func (s *site) add(role, public string) {
	inbox := natsjs.InboxOf(public) + ".>"
	if name := strings.ToUpper(role); !strings.HasPrefix(role, "publisher") {
		fmt.Fprintf(&s.head, "%s: \"%s\"\n%s_INBOX: \"%s\"\n", name, public, name, inbox)
		return
	}
	fmt.Fprintf(&s.devices, `  { nkey: "%s", permissions: { # %s
      publish: ["$SYS.REQ.USER.INFO", "panlearn.*.report.*.*",
        %s]
      subscribe: ["%s", "panlearn.*.wake.>"]
  } }
`, public, role, devicesRead, inbox)
}

func (s *site) bytes() []byte {
	return fmt.Appendf(s.head.Bytes(), "# Each publisher has an inbox of its own, so that none reads another's answers.\nDEVICES: [\n%s]\n", s.devices.Bytes())
}
