package golden

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"slices"
	"testing"
)

// Picture writes a picture of a page, a PNG, in 256 colours, the most frequent ones: a page has few. Nobody compares
// pictures: a test takes one where Updating.
func Picture(t *testing.T, path string, shot []byte) {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	often := map[color.RGBA]int{}
	box := full.Bounds()
	at := func(x, y int) color.RGBA {
		c := color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)
		return color.RGBA{c.R &^ 3, c.G &^ 3, c.B &^ 3, 255}
	}
	for y := range box.Dy() {
		for x := range box.Dx() {
			often[at(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(often), func(a, b color.RGBA) int {
		return cmp.Or(often[b]-often[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	palette := color.Palette{}
	for _, c := range colours[:min(256, len(colours))] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	out := image.NewPaletted(box, palette)
	for y := range box.Dy() {
		for x := range box.Dx() {
			c := at(x, y)
			if _, ok := nearest[c]; !ok {
				nearest[c] = uint8(palette.Index(c))
			}
			out.SetColorIndex(x, y, nearest[c])
		}
	}
	var written bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&written, out); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, written.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
