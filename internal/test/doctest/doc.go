// Package doctest runs the commands of the documents. It has no code of its own.
//
// The first word after the fence of a code block is its language, as ever; further words, which no reader of the
// rendered page sees, determine how it is tested. A block of sh or python has to be run, or to name the reason why not:
//
//	```sh test                  run it; it has to succeed
//	```sh test needs=curl,jq    the same where these programs are, else NOT RUN is printed
//	```sh test background=8090  leave it running, go on when something listens on that port
//	```sh test long             run it where PANLEARN_DEEP enables long tests, else print NOT RUN
//	```sh test users=2000       where it does not, files of events and the task quickstart have that many users
//	```sh norun="why"           not run; its commands and flags are still looked up in --help
//	```text output              what the block before prints, times and hashes aside; a line ... is any number of lines
//	```text output=0.05         the same, where a number may differ by that share of the larger of the two
//	```text output=any          the same, numbers aside: for what depends on the machine
//	```yaml file=NAME           write it to this file for the blocks that follow
//	```go in=PATH               these lines are in this file of the repository, one after another
//
// needs= also takes data (the public data sets of $PANLEARN_DATA, for the page in $D), demo (the folder demo/, as the
// commands of README.md leave it), and numpy (a python3 that has it). Where one is missing the block is passed over;
// later blocks that need its results name the same need. Blocks without a language are refused, so that none escapes by
// saying nothing.
//
// The blocks of a page run in order in one shell with `set -e`, in a folder of the page's own, which sees deploy/
// and docs/ of the repository. The commands are on its PATH, built once: `go build -o bin/ ./cmd/...` links them to
// bin/, `go run ./cmd/learner` starts that one, everything else of go runs in the repository. The ports that pages
// name (4222, 6222, 8090, 8095, 8097, 8222, 9090, 9091, 9464) are replaced by free ones.
package doctest
