package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// A PublicModel is a model of a public sample from which coordinates of a task are made: linear scores and trees of the
// task's columns or vector. It is a file in JSON that a task names by its hash, see Features.Public. Its inputs are the
// coordinates of features.columns in order, hidden columns included, or the values of a vector.
//
// Let f_j be the inputs as the map scales them. Output k of a block is
//
//	o_k = bias_k + sum_j weights_kj f_j + the values of the leaves that the event reaches
//
// and its coordinate is o_k / range, moved into [-1, 1]. Sums are in the order given, in 64 bits.
type PublicModel struct {
	Version int           `json:"version"` // 1
	Sample  PublicSample  `json:"sample"`
	Inputs  []string      `json:"inputs"`           // names of the coordinates
	Blocks  []PublicBlock `json:"blocks,omitempty"` // in the order of the coordinates
	Offset  *PublicBlock  `json:"offset,omitempty"` // one output: the public prediction in the units of the label
}

// A PublicSample describes the rows from which a PublicModel was made. A leaf of few rows may reveal something about
// them.
type PublicSample struct {
	Rows int `json:"rows"` // N
	Leaf int `json:"leaf"` // the fewest rows of a leaf; 0 without trees
}

// A PublicBlock is a number of outputs that are computed together. At least one of Weights, Trees and Forest is there.
type PublicBlock struct {
	Name    string    `json:"name,omitempty"` // [a-z0-9_-]{1,32}, of coordinates NAME~1, NAME~2; of the offset none
	Outputs int       `json:"outputs"`
	Range   float64   `json:"range,omitempty"`   // > 0; of the offset none
	Bias    []float64 `json:"bias,omitempty"`    // one an output; empty: all 0
	Weights *Matrix   `json:"weights,omitempty"` // outputs x inputs
	Trees   []Tree    `json:"trees,omitempty"`   // each adds to one output
	Forest  *Forest   `json:"forest,omitempty"`  // trees that add to every output
}

// A Tree is a decision tree. Question i goes to Left[i] if the event's value of input Feature[i] is at most
// Threshold[i], else to Right[i]; the first is question 0. A branch c >= 0 is question c, which is after i; a branch c
// < 0 ends in leaf -c-1. There is one leaf more than there are questions, and one way to each.
//
// A number has its value in the units of the data, filled where it is missing, neither scaled nor cut, and rounded to
// the nearest number of 32 bits; any other input is 0 or 1.
type Tree struct {
	Output    int       `json:"output,omitempty"` // of a block, from 0; of a forest none
	Feature   []int     `json:"feature"`
	Threshold []float32 `json:"threshold"`
	Left      []int     `json:"left"`
	Right     []int     `json:"right"`
	Leaf      []float32 `json:"leaf,omitempty"` // values of the leaves; of a forest none
}

// A Forest is a list of trees whose leaves have a value for every output.
type Forest struct {
	Trees []Tree `json:"trees"`
	// Leaves is outputs x leaves: the leaves of the first tree in order, then of the second, and so on.
	Leaves *Matrix `json:"leaves"`
}

// A Matrix holds numbers in few bits: entry (k, j) is Scale[k] times the signed integer number k*Cols + j of Values.
type Matrix struct {
	Rows  int       `json:"rows"`
	Cols  int       `json:"cols"`
	Bits  int       `json:"bits"`  // 8 or 16
	Scale []float64 `json:"scale"` // one a row, >= 0
	// Values are integers in two's complement, little-endian; in JSON their bytes are in base64.
	Values []byte `json:"values"`
}

// PublicVersion is the only version of a PublicModel.
const PublicVersion = 1

// MaxPublic is the size of the largest file of a PublicModel, in bytes.
const MaxPublic = 256 << 10

// Limits of a PublicModel, which keep arithmetic and time in bounds.
const (
	maxPublicOutputs = 1024 // of all blocks together
	maxTreeDepth     = 32   // questions on the way to a leaf
	maxPublicNumber  = 1e30 // of weights, biases and leaves, and of a range and its inverse
)

// parsePublic reads the file of a PublicModel and validates it. It refuses unknown keys.
func parsePublic(data []byte) (*PublicModel, error) {
	if len(data) > MaxPublic {
		return nil, refuse(publicPath, fmt.Sprintf("%d bytes", len(data)), "a file of at most %d bytes", MaxPublic)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	p := new(PublicModel)
	if err := d.Decode(p); err != nil {
		return nil, refuse(publicPath, "", "a public model in JSON: %v", shorten(err.Error()))
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, refuse(publicPath, "", "nothing after the public model")
	}
	if err := p.validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// Encode validates the model and returns its file, of at most MaxPublic bytes.
func (p *PublicModel) Encode() ([]byte, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode public model: %w", err)
	}
	if data = append(data, '\n'); len(data) > MaxPublic {
		return nil, refuse(publicPath, fmt.Sprintf("%d bytes", len(data)), "a file of at most %d bytes", MaxPublic)
	}
	return data, nil
}

// NewMatrix rounds rows of equal length to integers of 8 or 16 bits, as fine as the largest of a row allows.
func NewMatrix(rows [][]float64, bits int) *Matrix {
	m := &Matrix{Rows: len(rows), Bits: bits, Scale: make([]float64, len(rows))}
	if len(rows) > 0 {
		m.Cols = len(rows[0])
	}
	top := float64(int(1)<<(bits-1) - 1)
	for k, row := range rows {
		var most float64
		for _, v := range row {
			most = max(most, math.Abs(v))
		}
		m.Scale[k] = most / top
		for _, v := range row {
			i := 0
			if m.Scale[k] > 0 {
				i = int(math.Round(min(max(v/m.Scale[k], -top), top)))
			}
			m.Values = append(m.Values, byte(i))
			if bits == 16 {
				m.Values = append(m.Values, byte(i>>8))
			}
		}
	}
	return m
}

// At returns entry (k, j).
func (m *Matrix) At(k, j int) float64 {
	i := k*m.Cols + j
	if m.Bits == 8 {
		return m.Scale[k] * float64(int8(m.Values[i]))
	}
	return m.Scale[k] * float64(int16(uint16(m.Values[2*i])|uint16(m.Values[2*i+1])<<8))
}

// width returns the number of coordinates.
func (p *PublicModel) width() int {
	n := 0
	for i := range p.Blocks {
		n += p.Blocks[i].Outputs
	}
	return n
}
