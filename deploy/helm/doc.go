// Package helm tests the chart in panlearn with Helm's own library: lint, schema of values, and what it renders, which
// deploy/kubernetes and testdata keep. It is a module of its own, so that Helm is none of the programs' requirements.
package helm
