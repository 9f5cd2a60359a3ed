package task

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"pgregory.net/rapid"
)

func mustCompile(t rapid.TB, s *Spec) *FeatureMap {
	t.Helper()
	m, err := s.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMapColumns(t *testing.T) {
	m := mustCompile(t, mustParse(t, plain, "intercept=0.5", "features.columns.1.unknown=other"))
	want := []string{"age", "job=a", "job=b", "job=*", "url#0", "url#1", "url#2", "url#3"}
	if !slices.Equal(m.Names(), want) || m.Dim() != 9 {
		t.Fatalf("d = %d, names %v, want %v and the intercept", m.Dim(), m.Names(), want)
	}
	if x := math.Sqrt(3.25); m.Bound() != x { // 1 + 1 + 1 + 0.5^2
		t.Errorf("bound %v, want %v", m.Bound(), x)
	}
	bucket := int32(4 + murmur3("http://a", murmur3("url", 0))%4)
	var e convex.Example
	for _, c := range []struct {
		age, job string
		value    float64
		at       int32
	}{
		{"0", "a", -1, 1}, {"100", "b", 1, 2}, {"50", "a", 0, 1}, {"75", "c", 0.5, 3}, {" 1e9 ", "", 1, 3},
		{"-5", "b", -1, 2},
	} {
		if err := m.Map(Row{Fields: []string{c.age, c.job, "http://a"}, Label: "1.0"}, &e); err != nil {
			t.Fatal(err)
		}
		got := convex.Example{Index: []int32{0, c.at, bucket, 8}, Value: []float64{c.value, 1, 1, 0.5}, Label: 1}
		if !reflect.DeepEqual(e, got) {
			t.Errorf("age %s, job %s: got %v %v %v", c.age, c.job, e.Index, e.Value, e.Label)
		}
	}
}

// TestBuckets: an edge belongs to the bucket above it.
func TestBuckets(t *testing.T) {
	in := input{Source: (&Column{Name: "age", Kind: Bucketed, Edges: []float64{25, 35}}).source(), fields: []int{0}}
	for field, want := range map[string]float64{"-1e9": 0, "24.999": 0, "25": 1, " 25.0 ": 1, "34": 1, "35": 2, "1e9": 2,
		"": none, "nan": none} {
		if got, _, err := in.value([]string{field}); err != nil || got != want {
			t.Errorf("%q: bucket %v, %v, want %v", field, got, err, want)
		}
	}
	for _, field := range []string{"x", "inf"} {
		if got, _, err := in.value([]string{field}); err == nil {
			t.Errorf("%q has bucket %v", field, got)
		}
	}
}

// TestCrossOfANumber: a number has a coordinate of its own for each word, which is its scaled value for the word of the
// row.
func TestCrossOfANumber(t *testing.T) {
	m := mustCompile(t, mustParse(t, regression, "intercept=0", `features={columns: [{column: age, kind: numeric, min: 0, max: 10, scale: raw, hidden: true,
		missing: {fill: 4}}, {column: job, kind: categorical, vocabulary: [a, b], unknown: drop, hidden: true}],
		crosses: [{columns: [job], number: age}]}`))
	if want := []string{"age*job=a", "age*job=b"}; !slices.Equal(m.Names(), want) || m.Bound() != 10 {
		t.Errorf("names %q, want %q; bound %v", m.Names(), want, m.Bound())
	}
	for _, c := range []struct {
		age, job string
		want     []float64
	}{{"3", "a", []float64{3, 0}}, {"30", "b", []float64{0, 10}}, {"", "b", []float64{0, 4}}, {"3", "c",
		[]float64{0, 0}}} {
		x := make([]float64, 2)
		mapped(t, m, Row{Fields: []string{c.age, c.job}, Label: "1"}).AddTo(x, 1)
		if !slices.Equal(x, c.want) {
			t.Errorf("%s, %s: %v, want %v", c.age, c.job, x, c.want)
		}
	}
}

// TestCrossesOfTooMany: the combinations of a cross that is hashed are numbered in 32 bits: more are refused.
func TestCrossesOfTooMany(t *testing.T) {
	for buckets, ok := range map[int]bool{4095: true, 4097: false} {
		_, err := Parse([]byte(strings.Replace(plain, "{column: url, kind: hashed, buckets: 4}", fmt.Sprintf(
			"{column: url, kind: hashed, buckets: 1048576, hidden: true}\n    - {column: age, kind: hashed, buckets: %d, hidden: true}\n  crosses: [{columns: [age, url], buckets: 8}]",
			buckets), 1)), nil)
		var field *FieldError
		if ok != (err == nil) || !ok && (!errors.As(err, &field) || field.Path != "features.crosses.0.columns") {
			t.Errorf("2^20 times %d combinations: %v", buckets, err)
		}
	}
}

// TestScaleOfIndicators: the conventions of scale for a9a: 123 indicators as they are, an intercept of 1, X^2 =
// 15.
func TestScaleOfIndicators(t *testing.T) {
	s, err := Load("../../deploy/tasks/a9a.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := mustCompile(t, s)
	if m.Dim() != 124 || math.Abs(m.Bound()*m.Bound()-15) > 1e-12 {
		t.Errorf("d = %d, X^2 = %v; want 124, 15", m.Dim(), m.Bound()*m.Bound())
	}
	var e convex.Example
	row := Row{Index: []int32{2, 10, 122}, Value: []float64{1, 1, 1}, Label: "-1"}
	if err := m.Map(row, &e); err != nil {
		t.Fatal(err)
	}
	if want := (convex.Example{Index: []int32{2, 10, 122, 123}, Value: []float64{1, 1, 1, 1},
		Label: -1}); !reflect.DeepEqual(e, want) {
		t.Errorf("got %v %v %v", e.Index, e.Value, e.Label)
	}
}

// TestMapLayout: only numeric columns make a dense vector; a vector without any value stays sparse.
func TestMapLayout(t *testing.T) {
	var e convex.Example
	m := mustCompile(t, mustParse(t, regression))
	if err := m.Map(Row{Fields: []string{"0.5"}, Label: "7.5"}, &e); err != nil {
		t.Fatal(err)
	}
	if want := (convex.Example{Value: []float64{0, 1}, Label: 0.5}); !reflect.DeepEqual(e, want) {
		t.Errorf("got %v %v %v, want dense", e.Index, e.Value, e.Label)
	}
	e = convex.Example{}
	m = mustCompile(t, mustParse(t, sparse, "intercept=0"))
	if err := m.Map(Row{Index: []int32{}, Label: "1"}, &e); err != nil {
		t.Fatal(err)
	}
	if e.Index == nil || e.Validate(m.Dim()) != nil {
		t.Errorf("an empty sparse row became dense: %v", e.Index)
	}
}

// TestInvalidRows: an invalid row names line and column, and nothing of its contents.
func TestInvalidRows(t *testing.T) {
	columns := mustCompile(t, mustParse(t, plain))
	vector := mustCompile(t, mustParse(t, sparse))
	number := mustCompile(t, mustParse(t, regression))
	const secret = "s3cr3t"
	for _, c := range []struct {
		m      *FeatureMap
		row    Row
		column string
	}{
		{columns, Row{Fields: []string{secret, "a", "u"}, Label: "1"}, "age"},
		{columns, Row{Fields: []string{"-inf", "a", "u"}, Label: "1"}, "age"},
		{columns, Row{Fields: []string{"0x1p4", "a", "u"}, Label: "1"}, "age"},
		{columns, Row{Fields: []string{"1e999", "a", "u"}, Label: "1"}, "age"},
		{columns, Row{Fields: []string{"1", secret, "u"}, Label: "1"}, "job"},
		{columns, Row{Fields: []string{"1", "a", "u"}, Label: secret}, "y"},
		{columns, Row{Fields: []string{"1", "a"}, Label: "1"}, ""},
		{columns, Row{Index: []int32{1}, Value: []float64{1}, Label: "1"}, ""},
		{vector, Row{Index: []int32{10}, Value: []float64{1}, Label: "1"}, ""},
		{vector, Row{Index: []int32{3, 3}, Value: []float64{1, 1}, Label: "1"}, ""},
		{vector, Row{Index: []int32{-1}, Value: []float64{1}, Label: "1"}, ""},
		{vector, Row{Index: []int32{1}, Value: []float64{math.NaN()}, Label: "1"}, ""},
		{vector, Row{Index: []int32{1}, Value: []float64{1, 1}, Label: "1"}, ""},
		{vector, Row{Value: []float64{1, 1}, Label: "1"}, ""},
		{vector, Row{Index: []int32{1}, Value: []float64{1}, Label: secret}, "label"},
		{number, Row{Fields: []string{"1"}, Label: secret}, "y"},
		{number, Row{Fields: []string{"1"}, Label: "inf"}, "y"},
	} {
		c.row.Line = 17
		var e convex.Example
		err := c.m.Map(c.row, &e)
		var bad *RowError
		if !errors.As(err, &bad) || bad.Line != 17 || bad.Column != c.column {
			t.Errorf("got %v, want a RowError at line 17, column %q", err, c.column)
			continue
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows contents: %v", err)
		}
	}
	if s := fmt.Sprintf("%v %+v %s %d", Row{Label: secret}, Row{Label: secret}, Row{Label: secret},
		Row{Label: secret}); strings.Contains(s, secret) {
		t.Errorf("a row prints its contents: %s", s)
	}
}

// TestMapIsConcurrent: one map serves many goroutines; the race detector is the judge.
func TestMapIsConcurrent(t *testing.T) {
	m := mustCompile(t, mustParse(t, plain))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var e convex.Example
			for i := range 200 {
				row := Row{Fields: []string{strconv.Itoa(i), "a", strconv.Itoa(i)}, Label: "1"}
				if err := m.Map(row, &e); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestNormIsBounded: no row, however wild, makes a vector that is longer than the bound, or that convex would
// refuse.
func TestNormIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		m := mustCompile(t, s)
		loss, err := s.Loss()
		if err != nil {
			t.Fatal(err)
		}
		var e convex.Example
		for range 3 { // the same memory again
			if err := m.Map(drawRow(t, s, false), &e); err != nil {
				t.Fatal(err)
			}
			if err := e.Validate(m.Dim()); err != nil {
				t.Fatal(err)
			}
			if err := loss.CheckLabel(e.Label); err != nil {
				t.Fatal(err)
			}
			if n := e.Norm(); n > m.Bound() {
				t.Fatalf("norm %v above the bound %v", n, m.Bound())
			}
		}
	})
}
