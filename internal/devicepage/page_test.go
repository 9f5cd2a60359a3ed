package devicepage

import (
	"context"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/stream"
)

// TestPage: the page and all that it loads come under the strict policy, without a cookie, and name nothing of another
// origin. A task that is not announced has a page without the device.
func TestPage(t *testing.T) {
	announced := false
	h := Handler("churn", func(context.Context) (stream.Hash, bool) { return stream.Hash{0xab}, announced })
	get := func(path string) *httptest.ResponseRecorder {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		head := w.Header()
		if got := head.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'; script-src 'self'; "+
			"connect-src 'self'; style-src 'self'; ") || strings.Contains(got, "unsafe") {
			t.Errorf("%s: policy %q", path, got)
		}
		if head.Get("Set-Cookie") != "" || head.Get("Referrer-Policy") != "no-referrer" ||
			head.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", path, head)
		}
		return w
	}
	if before := get(Path).Body.String(); strings.Contains(before, "<script") || !strings.Contains(before, "not begun") {
		t.Errorf("before the task: %s", before)
	}
	announced = true
	body := get(Path).Body.String()
	if !strings.Contains(body, `data-task="churn" data-pin="ab00`) || strings.Contains(body, "not begun") {
		t.Errorf("the page does not name its task: %s", body)
	}
	if inline := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script[^>]*>[^<]|https?:|//[a-z]`).FindString(body); inline != "" {
		t.Errorf("the page has %q", inline)
	}
	loads := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(body, -1)
	if len(loads) != 2 {
		t.Errorf("the page loads %v", loads)
	}
	for _, name := range Bundle {
		loads = append(loads, []string{"", "device/" + name})
	}
	for _, at := range loads {
		if w := get("/" + at[1]); w.Code != 200 || w.Body.Len() < 1000 {
			t.Errorf("%s: %d, %d bytes", at[1], w.Code, w.Body.Len())
		}
	}
	script := get(Path + "/page.js").Body.String()
	if word := regexp.MustCompile(`localStorage|sessionStorage|document\.cookie|innerHTML|Math\.random|\bfetch\(|XMLHttpRequest`).
		FindString(script); word != "" {
		t.Errorf("the page's script has %s", word)
	}
	if w := get(Path + "/../page.go"); w.Code == 200 {
		t.Error("more than the page is served")
	}
}
