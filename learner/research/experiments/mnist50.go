package main

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// What a silo has of a digit, and how many silos a digit is in: of 5 even and 5 odd ones, each pair is a silo.
const (
	ofDigit    = 774
	digitSilos = 5
	kept       = 50 // principal components
)

// The declaration of mnist10.yaml that is read without intercept, so that an example is an image of pixels in [0, 1].
const mnistTask = "deploy/tasks/mnist10.yaml"

// mnist50 writes the first 3,870 images of each digit as 50 principal components, LIBSVM text, for
// deploy/tasks/mnist-silos.yaml. The components are found on the folder's other images, which no silo has:
// they are of the same public data set, so nothing is learned of the silos' rows.
func mnist50(folder string, to io.Writer, progress io.Writer) error {
	spec, err := task.Load(mnistTask, []string{"intercept=0"})
	if err != nil {
		return err
	}
	features, err := spec.Compile()
	if err != nil {
		return err
	}
	load := func(name string) ([]convex.Example, error) {
		data := filepath.Join(folder, name+"-images-idx3-ubyte.gz") + "," + filepath.Join(folder,
			name+"-labels-idx1-ubyte.gz")
		rows, unfit, err := run.LoadExamples(features, data, func(*task.RowError) {})
		if err == nil && len(unfit) > 0 {
			err = fmt.Errorf("%s: %d images are none", data, len(unfit))
		}
		return rows, err
	}
	all, err := load("train")
	if err != nil {
		return err
	}
	others, err := load("t10k")
	if err != nil {
		return err
	}
	const digits = 2 * digitSilos
	var taken [digits]int
	var rows []convex.Example
	for _, x := range all {
		if digit := int(x.Label); taken[digit] < ofDigit*digitSilos {
			taken[digit]++
			rows = append(rows, x)
		} else {
			others = append(others, x)
		}
	}
	if short := slices.Min(taken[:]); short < ofDigit*digitSilos {
		return fmt.Errorf("%s: %d images of one digit: want %d", folder, short, ofDigit*digitSilos)
	}
	c, err := principal(others, features.Dim(), kept)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(to)
	var entry, longest float64
	for i, x := range slices.Concat(rows, others) {
		at := c.of(x)
		if i >= len(rows) { // bounds are chosen by those that no silo has
			longest = max(longest, convex.Norm(at))
			for _, v := range at {
				entry = max(entry, v, -v)
			}
			continue
		}
		fmt.Fprint(out, int(x.Label))
		for k, v := range at {
			fmt.Fprintf(out, " %d:%.5g", k+1, v)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(progress,
		"%d images of %d, in the %d components of the %d others, in which these have values of at most %.2f and norms of at most %.2f\n",
		len(rows), len(all), kept, len(others), entry, longest)
	return out.Flush()
}
