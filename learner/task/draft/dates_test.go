package draft

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestDatesBecomeParts: of dates that tasks read the parts are taken that differ; others are left out.
func TestDatesBecomeParts(t *testing.T) {
	data := lines("at,day,born,same,y", 500, func(i int) string {
		at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i*7919%9000) * time.Hour)
		day := at.Format(time.DateOnly)
		if i%50 == 0 {
			day = "NA"
		}
		return fmt.Sprintf("%s,%s,%s,2024-05-06,%d", at.Format(time.RFC3339), day, at.Format("02/01/2006"), i*13%11%2)
	})
	_, file, valid, rows := draft(t, write(t, "rides.csv", data), Options{})
	for _, want := range []string{
		`{column: "hour of at", field: at, part: hour, kind: hats, knots: [0, 6, 12, 18, 24]}`,
		`{column: "weekday of at", field: at, part: weekday, kind: bucketed, edges: [2, 3, 4, 5, 6, 7]}`,
		`{column: "month of at", field: at, part: month, kind: hats, knots: [1, 4, 7, 10, 12]}`,
		`{column: "weekday of day", field: day, part: weekday, kind: bucketed, edges: [2, 3, 4, 5, 6, 7], missing: {tokens: [NA]}}`,
		"# Left out: born, a date or a time;", "# Left out: same,",
	} {
		if !strings.Contains(file, want) {
			t.Errorf("no %q in\n%s", want, file)
		}
	}
	if strings.Contains(file, "hour of day") || valid != rows || rows != 500 {
		t.Errorf("%d of %d rows are valid\n%s", valid, rows, file)
	}
}
