// Package storetest is the contract of [state.Store] as tests, and the script of rounds that they play.
//
// An implementation calls [Run] with a way to open the same bytes again and again. Its own tests (crashes, injected
// errors) use [Script] and [Script.Advance] too: every checkpoint of a script is a function of its round, so whatever
// a store returns can be compared with what it should be.
package storetest
