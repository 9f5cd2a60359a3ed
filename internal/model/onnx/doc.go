// Package onnx writes computation graphs in the ONNX file format: a Graph takes nodes one by one, gives every
// tensor a name of its own, and ends as the bytes of a model.
//
// Tensors are of doubles, int64 or strings, so a runtime's results can be compared with ours to the last
// digits. Operators come from ai.onnx 13 and ai.onnx.ml 2, which ONNX Runtime has had since its version 1.6,
// and hashing is ONNX Runtime's own. The meaning of a node is up to the caller: nothing here checks that an
// operator exists or that shapes fit.
package onnx

//go:generate sh -c "protoc --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) -I. --go_out=. --go_opt=paths=source_relative onnx.proto"
