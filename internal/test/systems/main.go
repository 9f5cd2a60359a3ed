// Command systems type-checks the packages of this module, with their tests and with everything that they import, for
// each system that it is given, as in
//
//	go run ./internal/test/systems darwin/arm64 windows/amd64
//
// It finds what a compiler for that system would refuse, and generates no code. It does not link, and it runs nothing.
// It leaves out internal/test, which starts, stops and measures processes as Linux does.
package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	failed := len(os.Args) < 2
	for _, system := range os.Args[1:] {
		errs, err := check(system)
		if err != nil {
			errs = append(errs, err.Error())
		}
		for _, e := range errs {
			fmt.Fprintf(os.Stderr, "%s: %s\n", system, e)
		}
		failed = failed || len(errs) > 0
	}
	if failed {
		os.Exit(1)
	}
}

// check returns what does not type-check on a system, which is written as GOOS/GOARCH. It returns an error where the
// packages cannot be listed.
func check(system string) ([]string, error) {
	goos, goarch, ok := strings.Cut(system, "/")
	if !ok {
		return nil, fmt.Errorf("want GOOS/GOARCH")
	}
	all, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedDeps | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax,
		Env:   append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
		Tests: true,
	}, "./...")
	if err != nil {
		return nil, err
	}
	var errs []string
	n := 0
	packages.Visit(all, nil, func(p *packages.Package) {
		if strings.Contains(p.PkgPath, "/internal/test/") {
			return
		}
		n++
		for _, e := range p.Errors {
			errs = append(errs, e.Error())
		}
	})
	fmt.Printf("%s: %d packages read, %d errors\n", system, n, len(errs))
	return errs, nil
}
