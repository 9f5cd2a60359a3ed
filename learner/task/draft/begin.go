package draft

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/draft/publicmodel"
)

// Constants of tasks that begin with a public model, in units of users times epsilon where they speak of users.
const (
	epsilon         = 1.0 // of a drafted task
	leafRows        = 15  // of a leaf, at least
	fewRows         = 500 // of a sample: below, none of its labels is used where users are many
	leastLabelled   = 100 // rows of a sample without which its labels are never used
	rowsPerClass    = 30
	usersPerHat     = 20  // for each coordinate: below, numbers have few knots, and there is one round
	manyUsers       = 200 // for each coordinate: there are three rounds
	usersPerTurn    = 250 // for each direction of correction
	mostDirections  = 200
	leastDirections = 8
	mostPool        = 1200 // features that directions are made of
	forestTrees     = 20
	forestLeaves    = 16
	stages          = 8
	usersPerStage   = 500       // of numbers
	treeBytes       = 200 << 10 // of a file that trees may take
	leafBytes       = 31        // of each leaf there
	widest          = 2000      // coordinates of the plain task, of which a public model is made
	mostValues      = 2_000_000 // of them in all rows, for a public model to be made in seconds
	leastOfWide     = 1000      // rows, however many values that makes
	scoreRange      = 6.0       // of scores of classes
	directionRange  = 2.5       // standard deviations of a direction
	boundShare      = 0.95
	residualShare   = 0.995 // of the rows whose residuals, times residualRoom, lie in the bounds of a label
	residualRoom    = 1.1
)

// A beginning holds the parts of a task that the labels of the sample tell.
type beginning struct {
	entries [][]entry // of each feature, hidden where a public model looks at them
	vector  entry     // of data without columns, likewise
	public  *task.PublicModel
	file    []byte    // of the public model
	start   []float64 // of each score the coordinates and the intercept; nil: zero
	bound   float64   // bound on the norm; 0: the declaration's
	rounds  int       // of gradients; 0: as planned
	label   []field   // of a task with an offset; nil: the target's
	words   []string  // sentences for the file and the user
}

// begin makes a beginning, of features or of a vector of so many values; nil where the task begins with nothing.
func (w *writer) begin(features []feature, vector entry, width int, label []field, t target, rows int) (*beginning,
	error) {
	for _, f := range features {
		width += f.width
	}
	if why := w.without(width, t, rows); why != "" {
		w.note("no public model: %s", why)
		return nil, nil
	}
	most := min(mostLabelled, max(leastOfWide, mostValues/width))
	every := (rows + most - 1) / most
	m := &modeller{writer: w, features: features, vector: vector, label: label, target: t, every: every,
		users: w.users(rows)}
	if !w.options.NoTrees {
		b, err := m.withTrees()
		if b != nil || err != nil {
			return b, err
		}
	}
	if convex.TraitsOf(t.loss).Labels == convex.Numbers {
		w.note("no public model: of numbers it is made of trees")
		return nil, nil
	}
	return m.withHats()
}

// without returns why a task begins with nothing; empty where it does not.
func (w *writer) without(width int, t target, rows int) string {
	traits := convex.TraitsOf(t.loss)
	classes := 2
	if traits.Labels == convex.ManyClasses {
		classes = t.classes
	}
	users := float64(w.users(rows)) * epsilon
	switch {
	case w.options.NoLabels:
		return "labels of the sample are not used, as asked for"
	case w.options.Public == "" || w.options.Start == "":
		return "its files lie beside that of the task, which has no name: give one with -o"
	case !traits.Scores.Probable() && !traits.HalfSquare:
		return "there is none for loss " + t.loss
	case width > widest:
		return fmt.Sprintf("%d coordinates are more than %d", width, widest)
	case rows < max(leastLabelled, rowsPerClass*classes):
		return fmt.Sprintf("%d rows are too few, want %d", rows, max(leastLabelled, rowsPerClass*classes))
	case rows < fewRows && users >= manyUsers*float64(width+1) && traits.Labels.Classes():
		return fmt.Sprintf("%d rows tell less than so many users, want %d", rows, fewRows)
	}
	return ""
}

// users returns how many take part.
func (w *writer) users(rows int) int { return cmp.Or(w.options.Users, rows) }

// A modeller makes the public model of a sample.
type modeller struct {
	*writer
	features []feature
	vector   entry
	label    []field
	target   target
	every    int
	users    int
	sample   *labelled
	blend    *publicmodel.Blend
	table    *publicmodel.Table
	asked    []int // inputs of trees
}

// expand returns the entries of all features.
func (m *modeller) expand(of func(f feature) []entry) *beginning {
	b := &beginning{vector: m.vector}
	for _, f := range m.features {
		var entries []entry
		if f.entry != nil {
			entries = of(f)
		}
		b.entries = append(b.entries, entries)
	}
	return b
}

// withHats lets the task begin with a linear model of words and hats.
func (m *modeller) withHats() (*beginning, error) {
	var b *beginning
	for _, knots := range [...]int{fineKnots, coarseKnots} {
		b = m.expand(func(f feature) []entry { return f.asHats(knots) })
		var err error
		if m.sample, err = m.read(b); err != nil {
			return nil, err
		}
		if m.perCoordinate(len(m.sample.inputs)) >= usersPerHat {
			break
		}
	}
	s := m.sample
	linear, inputs, factor := m.ridges(allOf(len(s.inputs)))
	m.blend = publicmodel.Train(nil, &s.labels, nil, linear, leafRows)
	for k, weights := range m.blend.Linear.Weights {
		for i := range inputs {
			b.start = append(b.start, weights[i]*factor[i])
		}
		b.start = append(b.start, m.blend.Linear.Bias[k])
	}
	q := m.perCoordinate(len(s.inputs))
	switch {
	case q < usersPerHat:
		b.rounds = 1
	case q < manyUsers:
		b.rounds = 2
	case len(s.labels.Y) >= 1000:
		b.rounds = 3
	}
	m.describe(b, "a linear model")
	m.expect(b, len(s.inputs))
	return b, nil
}

// perCoordinate returns users times epsilon for each coordinate.
func (m *modeller) perCoordinate(width int) float64 {
	return float64(m.users) * epsilon / float64(width)
}

// ridges returns the candidates of a linear model of some inputs, evened out.
func (m *modeller) ridges(inputs []int) (out []publicmodel.Ridge, of []int, factor []float64) {
	factor = m.sample.evened(inputs)
	d := publicmodel.NewDesign(m.sample.scaled, inputs, factor)
	for _, ridge := range [...]float64{10, 100, 1000} {
		out = append(out, publicmodel.Ridge{Design: d, Ridge: ridge})
	}
	return out, inputs, factor
}

func allOf(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func ones(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// withTrees lets the task begin with boosted trees and a linear model; nil where the trees of so many classes would not
// fit into a file.
func (m *modeller) withTrees() (*beginning, error) {
	b := m.expand(func(f feature) (out []entry) {
		for _, e := range f.asPool(fineKnots) {
			out = append(out, e.hidden())
		}
		return out
	})
	if b.vector != nil {
		b.vector = b.vector.hidden()
	}
	s, err := m.read(b)
	if err != nil {
		return nil, err
	}
	m.sample, m.asked = s, s.asked()
	outputs := s.labels.Outputs
	if s.labels.Kind == publicmodel.Numbers {
		outputs = 2 // as an offset and as coordinates
	}
	ways := publicmodel.Candidates(treeBytes / (leafBytes * outputs))
	if len(ways) == 0 {
		return nil, nil
	}
	var columns [][]float64
	for _, j := range m.asked {
		columns = append(columns, s.raw[j])
	}
	m.table = publicmodel.NewTable(columns)
	linear, inputs, factor := m.ridges(s.bent())
	if b.vector == nil {
		ridge := 1 / 0.03
		if s.labels.Kind == publicmodel.Numbers {
			ridge = 20
		}
		plain := publicmodel.NewDesign(s.scaled, m.asked, ones(len(m.asked)))
		linear = append(linear, publicmodel.Ridge{Design: plain, Ridge: ridge})
	}
	m.blend = publicmodel.Train(m.table, &s.labels, ways, linear, leafRows)
	if b.vector == nil && m.blend.Chosen == len(linear)-1 {
		inputs, factor = m.asked, ones(len(m.asked))
	}
	b.public = &task.PublicModel{Version: task.PublicVersion,
		Sample: task.PublicSample{Rows: len(s.labels.Y), Leaf: leafRows}}
	for _, c := range s.inputs {
		b.public.Inputs = append(b.public.Inputs, c.Name)
	}
	line := m.lines(inputs, factor)
	switch s.labels.Kind {
	case publicmodel.Numbers:
		m.numbers(b, line)
	case publicmodel.Many:
		m.classes(b, line)
	default:
		m.two(b, line)
	}
	return b, m.finish(b)
}

// lines returns the weights of the linear model for all inputs, a row for each output.
func (m *modeller) lines(inputs []int, factor []float64) [][]float64 {
	var out [][]float64
	for _, weights := range m.blend.Linear.Weights {
		row := make([]float64, len(m.sample.inputs))
		for i, j := range inputs {
			row[j] = weights[i] * factor[i]
		}
		out = append(out, row)
	}
	return out
}

// two lays out the scores of two classes: the trees in stages, and the linear model.
func (m *modeller) two(b *beginning, line [][]float64) {
	stage := task.PublicBlock{Name: "stage", Outputs: stages, Range: scoreRange, Bias: make([]float64, stages)}
	m.stage(&stage, 1)
	b.public.Blocks = append(b.public.Blocks, stage, task.PublicBlock{Name: "linear", Outputs: 1, Range: scoreRange,
		Bias: m.blend.Linear.Bias, Weights: task.NewMatrix(line, 16)})
	share := m.blend.Share
	for range stages {
		b.start = append(b.start, scoreRange*(1-share))
	}
	b.start = append(b.start, scoreRange*share)
	b.rounds = 2
	if d := min(mostDirections, int(float64(m.users)*epsilon/usersPerTurn)); d >= leastDirections {
		b.start = append(b.start, make([]float64, m.addDirections(b.public, d))...)
	}
	b.start = append(b.start, (1-share)*m.blend.Trees.Base[0])
	m.describe(b, "boosted trees")
}

// stage adds the trees of one output to a block, in as many parts as it has outputs, times a factor.
func (m *modeller) stage(block *task.PublicBlock, factor float64) {
	steps := m.blend.Trees.Steps
	for i, step := range steps {
		at := 0
		for at+1 < block.Outputs && float64(i) >= float64(len(steps))*math.Pow(float64(at+1)/float64(block.Outputs), 1.5) {
			at++
		}
		m.add(block, step[0], at, factor)
	}
}

// add adds a tree to a block's output; one that asks nothing to its bias.
func (m *modeller) add(block *task.PublicBlock, tree *publicmodel.Tree, output int, factor float64) {
	if t, asks := m.tree(tree, factor); asks {
		t.Output = output
		block.Trees = append(block.Trees, t)
	} else {
		block.Bias[output] += tree.Value[0] * factor
	}
}

// tree turns a tree into questions and leaves.
func (m *modeller) tree(tree *publicmodel.Tree, factor float64) (out task.Tree, asks bool) {
	place := make([]int, len(tree.Left)) // of each node among questions, or of leaves below 0
	questions, leaves := 0, 0
	for i := range tree.Left {
		if int(tree.Left[i]) == i {
			leaves++
			place[i] = -leaves
			out.Leaf = append(out.Leaf, float32(significant(tree.Value[i]*factor, digitsOfUnit)))
		} else {
			place[i] = questions
			questions++
		}
	}
	for i := range tree.Left {
		if int(tree.Left[i]) != i {
			out.Feature = append(out.Feature, m.asked[tree.Input[i]])
			out.Threshold = append(out.Threshold, tree.Threshold[i])
			out.Left = append(out.Left, place[tree.Left[i]])
			out.Right = append(out.Right, place[tree.Right[i]])
		}
	}
	return out, questions > 0
}

// classes lays out the scores of more classes: those of the trees and of the linear model, one a class.
func (m *modeller) classes(b *beginning, line [][]float64) {
	k := m.sample.labels.Outputs
	trees := task.PublicBlock{Name: "trees", Outputs: k, Range: scoreRange, Bias: make([]float64, k)}
	for _, step := range m.blend.Trees.Steps {
		for c, tree := range step {
			m.add(&trees, tree, c, 1)
		}
	}
	b.public.Blocks = append(b.public.Blocks, trees, task.PublicBlock{Name: "linear", Outputs: k, Range: scoreRange,
		Bias: m.blend.Linear.Bias, Weights: task.NewMatrix(line, 16)})
	for c := range k {
		own := make([]float64, 2*k+1)
		own[c], own[k+c] = scoreRange*(1-m.blend.Share), scoreRange*m.blend.Share
		own[2*k] = (1 - m.blend.Share) * m.blend.Trees.Base[c]
		b.start = append(b.start, own...)
	}
	b.rounds = 2
	m.describe(b, "boosted trees")
}

// numbers lays out an offset, and what it is the sum of as coordinates.
func (m *modeller) numbers(b *beginning, line [][]float64) {
	s, share := m.sample, m.blend.Share
	parts := min(max(int(float64(m.users)*epsilon/usersPerStage), 1), stages)
	stage := task.PublicBlock{Name: "stage", Outputs: parts, Bias: make([]float64, parts)}
	m.stage(&stage, 1)
	linear := task.PublicBlock{Name: "linear", Outputs: 1, Bias: slices.Clone(m.blend.Linear.Bias),
		Weights: task.NewMatrix(line, 16)}
	whole := make([][]float64, 1)
	for _, v := range line[0] {
		whole[0] = append(whole[0], share*s.std*v)
	}
	offset := &task.PublicBlock{Outputs: 1, Weights: task.NewMatrix(whole, 16),
		Bias: []float64{s.mean + s.std*(share*m.blend.Linear.Bias[0]+(1-share)*m.blend.Trees.Base[0])}}
	for _, step := range m.blend.Trees.Steps {
		m.add(offset, step[0], 0, (1-share)*s.std)
	}
	m.center(&stage)
	m.center(&linear)
	b.public.Blocks, b.public.Offset = []task.PublicBlock{stage, linear}, offset
	residual := make([]float64, len(s.labels.Y))
	for i, y := range s.labels.Y {
		residual[i] = math.Abs(y-m.blend.Scores[i]) * s.std
	}
	slices.Sort(residual)
	most := significant(residualRoom*quantile(residual, residualShare), 3)
	b.label = slices.DeleteFunc(slices.Clone(m.label), func(f field) bool { return f.key == "min" || f.key == "max" })
	b.label = append(b.label, field{"min", decimal(-most)}, field{"max", decimal(most)}, field{"offset", "true"})
	m.describe(b, "boosted trees")
}

// center moves the outputs of a block to mean 0 on the sample, and sets the range that nearly all of them keep.
func (m *modeller) center(block *task.PublicBlock) {
	var sizes []float64
	for k, values := range m.outputs(block) {
		mean, _, _ := momentsOf(values)
		block.Bias[k] -= mean
		for i, v := range values {
			values[i] = math.Abs(v - mean)
		}
		slices.Sort(values)
		sizes = append(sizes, quantile(values, residualShare))
	}
	block.Range = cmp.Or(significant(slices.Max(sizes), 3), 1)
}

// outputs returns the values of a block's outputs for all rows.
func (m *modeller) outputs(block *task.PublicBlock) [][]float64 {
	s := m.sample
	out := make([][]float64, block.Outputs)
	for k := range out {
		out[k] = make([]float64, len(s.labels.Y))
		for i := range out[k] {
			out[k][i] = block.Bias[k]
			if block.Weights != nil {
				for j, v := range s.scaled[i] {
					out[k][i] += block.Weights.At(k, j) * v
				}
			}
		}
	}
	for t := range block.Trees {
		tree := &block.Trees[t]
		for i := range s.labels.Y {
			out[tree.Output][i] += float64(tree.Leaf[m.leaf(tree, i)])
		}
	}
	return out
}

// leaf returns the leaf of a row.
func (m *modeller) leaf(tree *task.Tree, row int) int {
	at := 0
	for at >= 0 {
		if float32(m.sample.raw[tree.Feature[at]][row]) <= tree.Threshold[at] {
			at = tree.Left[at]
		} else {
			at = tree.Right[at]
		}
	}
	return -at - 1
}
