// Package devca writes everything that a broker with TLS and accounts needs on one machine or in one test: a
// certificate authority, certificates of the server and of every role, their NKeys, and the server's configuration.
//
// It is for development and for trying the shipped configuration. The authority's private key is dropped when the
// certificates are signed, so nobody can add one; for another host or publisher write another folder. A production
// site has its own authority and keeps the private halves where they are used.
package devca
