package stream

//go:generate sh -c "protoc --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) -I. --go_out=. --go_opt=paths=source_relative wire/panlearn.proto"
