package main

import "testing"

// TestFormatOfAFile checks that the ending of the file name selects the format, in capitals too; every other name
// means JSON.
func TestFormatOfAFile(t *testing.T) {
	for path, want := range map[string]string{"m.onnx": "onnx", "M.ONNX": "onnx", "a.d/m.npz": "npy", "m.npy": "npy",
		"m.json": "json", "": "json", "-": "json", "onnx": "json"} {
		if got := formatOf(path); got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
}
